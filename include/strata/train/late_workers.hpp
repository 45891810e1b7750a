// In an elastic training, fit admits workers that start late after a step, and sends them its state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/train/fit_session.hpp>
#include <strata/train/position_text.hpp>
#include <strata/train/training_session.hpp>
#include <string>
#include <vector>

namespace strata::core {

/// A callback that an elastic strategy adds to every fit, after the callbacks of the user. Weights, slots, position and the state
/// of each stateful_callback travel through the communicator, so no snapshot on a disk is needed.
class late_workers {
 public:
  void restore(training_session& session) {
    for (int attempt = 1; session.membership.is_late(); ++attempt) {
      STRATA_TRY {
        session.membership.join();
        receive_state(session.fit, session.membership);
      }
      STRATA_CATCH(const communication_error& failure) {  // a process was lost meanwhile
        if (attempt == most_attempts) STRATA_THROW_AGAIN;
      }
    }
  }
  void after_step(training_session& session) {
    if (!session.state.interrupted && session.membership.admit()) send_state(session.fit, session.membership);
  }
  void after_epoch(training_session&) {}
  void after_training(training_session& session) { session.membership.leave(); }

 private:
  static constexpr int most_attempts = 4;

  static void send_state(resumable_fit& fit, any_membership& members) {
    detail::named_texts values = detail::texts_of(fit.position());
    values[description] = detail::joined_lines(description_of(fit, members));
    std::string text = detail::packed(values);
    std::uint64_t size = text.size();
    members.broadcast_to_newcomers(std::as_writable_bytes(std::span(&size, 1)));
    members.broadcast_to_newcomers(std::as_writable_bytes(std::span(text)));
    for (const resumable_fit::array& a : fit.arrays()) members.broadcast_to_newcomers(a.bytes);
  }
  static void receive_state(resumable_fit& fit, any_membership& members) {
    std::uint64_t size = 0;
    members.broadcast_to_newcomers(std::as_writable_bytes(std::span(&size, 1)));
    std::string text(std::size_t(size), ' ');
    members.broadcast_to_newcomers(std::as_writable_bytes(std::span(text)));
    detail::named_texts values = detail::unpacked(text);
    const std::string difference = detail::difference_of(detail::lines_of(values[description]), description_of(fit, members));
    if (!difference.empty()) throw_error({"the running training is different: ", difference});
    for (const resumable_fit::array& a : fit.arrays()) members.broadcast_to_newcomers(a.bytes);
    fit.resume_at(detail::position_of(values, "the position from the chief"));
    members.has_caught_up();
  }

  static std::vector<std::string> description_of(resumable_fit& fit, const any_membership& members) {
    std::vector<std::string> lines = fit.description();
    lines.push_back(fit.plan());
    lines.push_back(detail::text_of({"fit number ", members.finished_fits() + 1, " of the program"}));
    return lines;
  }

  static constexpr const char* description = "description";
};
static_assert(session_callback<late_workers>);

}  // namespace strata::core
