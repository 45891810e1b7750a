// What fit does for an elastic training: workers that come late are taken in behind a step, and told all that decides the rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/error.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/train/position_text.hpp>
#include <strata/train/training_session.hpp>
#include <string>
#include <vector>

namespace strata {

/// The strategy adds it to every fit, behind the callbacks of the user. The others need no snapshot on a disk for it: weights, slots
/// and position travel through the communicator. (What callbacks remember is theirs.)
class late_workers {
 public:
  void restore(training_session& session) {
    for (int attempt = 1; session.is_late(); ++attempt) {
      try {
        session.enter();
        learn(session);
      } catch (const communication_error&) {  // somebody was lost meanwhile
        if (attempt == most_attempts) throw;
      }
    }
  }
  void after_step(training_session& session) {
    if (!session.state().interrupted && session.take_in()) tell(session);
  }
  void after_epoch(training_session&) {}
  void after_training(training_session& session) { session.farewell(); }

 private:
  static constexpr int most_attempts = 4;

  static void tell(training_session& session) {
    detail::texts facts = detail::texts_of(session.position());
    facts[description] = detail::joined_lines(description_of(session));
    std::string text;
    for (const auto& [name, value] : facts) text += name + '\0' + value + '\0';
    std::uint64_t size = text.size();
    session.hand_over(std::as_writable_bytes(std::span(&size, 1)));
    session.hand_over(std::as_writable_bytes(std::span(text)));
    for (const training_session::array& a : session.arrays()) session.hand_over(a.numbers);
  }
  static void learn(training_session& session) {
    std::uint64_t size = 0;
    session.hand_over(std::as_writable_bytes(std::span(&size, 1)));
    std::string text(std::size_t(size), ' ');
    session.hand_over(std::as_writable_bytes(std::span(text)));
    detail::texts facts;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t name = text.find('\0', at), value = text.find('\0', name + 1);
      facts[text.substr(at, name - at)] = text.substr(name + 1, value - name - 1);
      at = value + 1;
    }
    const std::string difference = detail::difference_of(detail::lines_of(facts[description]), description_of(session));
    if (!difference.empty()) throw error("the training that is under way is another one: " + difference);
    for (const training_session::array& a : session.arrays()) session.hand_over(a.numbers);
    session.resume_at(detail::position_of(facts, "what the chief says"));
    session.has_caught_up();
  }

  static std::vector<std::string> description_of(training_session& session) {
    std::vector<std::string> lines = session.description();
    lines.push_back(session.plan());
    lines.push_back("fit number " + std::to_string(session.fits_before() + 1) + " of the program");
    return lines;
  }

  static constexpr const char* description = "description";
};
static_assert(session_callback<late_workers>);

}  // namespace strata
