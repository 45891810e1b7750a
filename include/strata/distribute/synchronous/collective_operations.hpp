// What the processes of a synchronous training do together, besides adding up gradients; and how they go on when some are lost.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/communicators/timed.hpp>
#include <strata/distribute/elastic.hpp>
#include <strata/distribute/synchronous/tree_reduction.hpp>
#include <strata/program/plan.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

/// Base of an executor Self, which has `step()`, `set_step(step)`, `parameters_changed()`; `lasting_arrays()`, the bytes that
/// operations change for good; and `prepare_messages(leaves, purpose)` and `forget_messages()`, for what it sends by itself.
template <class Self, communicator Communicator>
class collective_operations {
 protected:
  static constexpr bool among_processes = !std::same_as<Communicator, alone>, may_be_elastic = elastic_communicator<Communicator>;
  struct nothing {};
  using connections = std::conditional_t<among_processes, timed<Communicator>, Communicator>;

 public:
  /// Seconds so far that handing messages over has taken, and waiting for them.
  double communicating() const {
    if constexpr (among_processes) return processes_.communicating();
    return 0;
  }
  double waiting() const {
    if constexpr (among_processes) return processes_.waiting();
    return 0;
  }
  bool is_chief() const { return processes_.rank() == 0; }

  /// All processes get the bytes of the chief. All have to call it, as they have to call `largest`.
  void broadcast([[maybe_unused]] std::span<std::byte> bytes) {
    if constexpr (among_processes)
      in_pieces(bytes, [&](std::span<std::byte> piece) {
        together(piece, [&] {
          say_begun();
          pass_on(piece, 0, [](int rank) { return rank != 0; });
        });
      });
  }
  /// The numbers of all processes, those of process 0 first. All have to call it, with as many numbers.
  std::vector<double> gather(std::span<const double> mine) {
    if constexpr (!among_processes) return {mine.begin(), mine.end()};
    std::vector<double> all(1 + mine.size() * std::size_t(first_size(processes_)));  // behind how many there are
    if constexpr (among_processes)
      together(std::as_writable_bytes(std::span(all)), [&] {
        const auto numbers_of = [&](int rank) { return all.data() + 1 + std::size_t(rank) * mine.size(); };
        all[0] = processes_.size();
        std::ranges::copy(mine, numbers_of(processes_.rank()));
        gathering_.prepare(processes_, mine.size(), processes_.size());
        gathering_.begin(processes_, processes_.size(), mine.size(), numbers_of);
        processes_.wait("an agreement");
        gathering_.finish(processes_, processes_.size(), mine.size(), numbers_of);
      });
    return {all.begin() + 1, all.begin() + 1 + long(all[0]) * long(mine.size())};
  }
  /// Of the numbers that the processes bring.
  double largest(double mine) { return std::ranges::max(gather(std::span(&mine, 1))); }
  /// Says a number that travels with the gradients of each step from now on. All have to begin with that between the same steps.
  void wish(double mine) {
    wish_ = mine;
    if constexpr (among_processes)
      if (wishes_.empty() && !is_elastic()) begin_to_wish();
  }
  /// The largest of those that travelled with the last step: the same in all processes.
  double wished() const {
    if constexpr (!among_processes) return wish_;
    double most = 0;
    for (std::size_t i = 0; i < wishes_.size(); i += wish_width) most = std::max(most, wishes_[i]);
    return most;
  }

  // Of an elastic training, between two steps.

  bool is_elastic() const {
    if constexpr (may_be_elastic) return processes_.is_elastic();
    return false;
  }
  /// This process has come when the others were under way. It has to `enter`, to be given all that they know, and to say so.
  bool is_late() const {
    if constexpr (may_be_elastic) return progress_.is_late;
    return false;
  }
  /// Throws communication_error if the others do not take it in, or are lost meanwhile.
  void enter() {
    if constexpr (may_be_elastic) {
      processes_.enter();
      catch_up();
    }
  }
  void has_caught_up() {
    if constexpr (may_be_elastic) progress_.is_late = false;
  }
  /// Takes in those that wait, if the chief has said along with the last step that there are some. Returns whether one has come.
  bool take_in() {
    if constexpr (may_be_elastic) {
      if (!is_elastic() || wishes_[1] == 0) return false;
      form_again("somebody wants to take part");
      return !processes_.newcomers().empty();
    }
    return false;
  }
  /// Those that have just been taken in get the bytes of the chief. If they are lost, the others go on.
  void hand_over([[maybe_unused]] std::span<std::byte> bytes) {
    if constexpr (may_be_elastic) {
      const auto lacks = [&](int rank) {
        return std::ranges::find(processes_.newcomers(), rank) != processes_.newcomers().end();
      };
      if (processes_.newcomers().empty() || (!is_chief() && !is_late())) return;
      try {
        pass_on_all(bytes, 0, lacks);
      } catch (const communication_error& e) {
        if (is_late()) throw;
        form_again(e.what());
      }
    }
  }
  int fits_before() const {
    if constexpr (may_be_elastic) return progress_.fits;
    return 0;
  }
  /// The end of a fit: nobody goes before the others have all that they need of it.
  void farewell() {
    if constexpr (may_be_elastic) {
      if (!is_elastic()) return;
      ++progress_.fits;
      try {
        largest(0);
      } catch (const communication_error&) {  // they have gone, and need nothing
      }
    }
  }

 protected:
  explicit collective_operations(Communicator processes) : processes_(std::move(processes)) {
    if constexpr (may_be_elastic) {
      progress_.is_late = processes_.is_late();
      if (is_elastic() && !progress_.is_late) begin_to_wish();
    }
  }

  [[no_unique_address]] connections processes_;

  /// What all processes do together, and what it results in. In an elastic training it is begun again without those that are
  /// lost, unless some of the others have completed it: then this process takes from them what it has missed. None is ahead by
  /// two, since each operation has a message from everybody to everybody.
  template <class Operation>
  void together([[maybe_unused]] std::span<std::byte> result, Operation&& operation) {
    if constexpr (may_be_elastic) {
      if (is_elastic()) {
        if (is_late()) throw error("the training is under way: a worker that comes late has to call fit before anything else");
        for (;;) {
          try {
            operation();
            return progress_.complete(result);
          } catch (const communication_error& e) {
            if (form_again(e.what())) return void(std::ranges::copy(progress_.result, result.begin()));
          }
        }
      }
    }
    operation();
  }

  /// Of an operation that does not need a message from everybody otherwise.
  void say_begun() {
    if constexpr (may_be_elastic) {
      if (!is_elastic()) return;
      progress_.unread.resize(wishes_.size());
      begin_wishes(progress_.unread);
    }
  }

  /// Says the wishes of this process, along with a step; `hear_wishes` when those of the others have come.
  void say_wishes() {
    if constexpr (among_processes) {
      if (wishes_.empty()) return;
      wishes_[wish_width * std::size_t(processes_.rank())] = wish_;
      if constexpr (may_be_elastic) wishes_[1] = is_chief() && processes_.late_one_waits();
      begin_wishes(wishes_);
    }
  }
  void hear_wishes() {
    if constexpr (among_processes)
      if (!wishes_.empty()) finish_wishes(wishes_);
  }
  /// Remembers for how many leaves there has to be memory for messages. Whether there are processes to send them to, as yet.
  bool may_prepare_messages([[maybe_unused]] int leaves, [[maybe_unused]] purpose why) {
    if constexpr (may_be_elastic) {
      progress_.leaves[int(why)] = leaves;
      return !processes_.is_late();
    }
    return true;
  }
  static int first_size(const Communicator& processes) {
    if constexpr (may_be_elastic) return processes.first_size();
    return processes.size();
  }
  static std::span<std::byte> bytes_of(auto& one) { return std::as_writable_bytes(std::span(&one, 1)); }

 private:
  /// The other wish is the chief's: somebody waits to be taken in.
  static constexpr std::size_t wish_width = may_be_elastic ? 2 : 1;

  [[no_unique_address]] std::conditional_t<among_processes, leaf_exchange<connections>, nothing> wish_exchange_, gathering_;
  double wish_ = 0;
  std::vector<double> wishes_;  // of all processes, along with the last step; empty: nobody is interested
  [[no_unique_address]] std::conditional_t<may_be_elastic, elastic_progress, nothing> progress_;

  Self& self() { return static_cast<Self&>(*this); }

  void begin_wishes(std::vector<double>& all) {
    wish_exchange_.begin(processes_, processes_.size(), wish_width, [&](int r) { return &all[wish_width * std::size_t(r)]; });
  }
  void finish_wishes(std::vector<double>& all) {
    wish_exchange_.finish(processes_, processes_.size(), wish_width, [&](int r) { return &all[wish_width * std::size_t(r)]; });
  }

  void begin_to_wish(double wished = 0) {
    wishes_.assign(wish_width * std::size_t(processes_.size()), 0);
    wishes_[0] = wished;
    wish_exchange_.prepare(processes_, wish_width, processes_.size());
  }
  template <class F>
  static void in_pieces(std::span<std::byte> bytes, F&& f) {
    constexpr std::size_t most = std::size_t{1} << 20;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(most, bytes.size()))) f(bytes.first(std::min(most, bytes.size())));
  }
  /// Of process `from`, to those that lack it.
  template <class Lacks>
  void pass_on(std::span<std::byte> piece, int from, Lacks&& lacks) {
    auto memory = processes_.allocate(piece.size());
    const int rank = processes_.rank();
    if (rank == from) {
      std::ranges::copy(piece, memory.data());
      for (int r = 0; r < processes_.size(); ++r)
        if (lacks(r)) processes_.send(memory, 0, piece.size(), r);
    } else if (lacks(rank)) {
      processes_.receive(memory, 0, piece.size(), from);
    }
    processes_.wait("what the others know");
    if (rank != from && lacks(rank)) std::copy_n(memory.data(), piece.size(), piece.data());
  }
  template <class Lacks>
  void pass_on_all(std::span<std::byte> bytes, int from, Lacks&& lacks) {
    in_pieces(bytes, [&](std::span<std::byte> piece) { pass_on(piece, from, lacks); });
  }

  /// Those that are left go on as the next generation, all at the same place. Returns whether this process was behind; then it
  /// has the result of the operation that it has not completed itself. Throws communication_error if the training does not go on.
  bool form_again(std::string why)
    requires may_be_elastic
  {
    for (;;) {
      if (++progress_.attempts > elastic_progress::most_attempts) throw communication_error(why);
      processes_.form_again(why);
      try {
        return catch_up();
      } catch (const communication_error& e) {  // another one is lost
        why = e.what();
      }
    }
  }
  bool catch_up()
    requires may_be_elastic
  {
    self().forget_messages();
    wish_exchange_ = {}, gathering_ = {};
    begin_to_wish(wished());
    for (const purpose why : {purpose::training, purpose::inference})
      if (const int leaves = progress_.leaves[int(why)]; leaves > 0) self().prepare_messages(leaves, why);

    constexpr double nothing_yet = -1;
    std::vector<double> completed(wishes_.size(), is_late() ? nothing_yet : progress_.completed);
    begin_wishes(completed);
    processes_.wait("where the others are");
    finish_wishes(completed);
    const auto most = std::ranges::max_element(completed);
    const auto lacks = [&](int rank) {
      const double its = completed[wish_width * std::size_t(rank)];
      return its != nothing_yet && its != *most;
    };
    const bool is_behind = lacks(processes_.rank());
    if (is_behind && progress_.completed + 1 != *most)
      throw error("a process has completed " + std::to_string(long(*most)) + " operations, but this one " +
                  std::to_string(long(progress_.completed)));
    bool one_is_behind = false;
    for (int r = 0; r < processes_.size(); ++r) one_is_behind = one_is_behind || lacks(r);
    if (one_is_behind) pass_on_state(int(most - completed.begin()) / int(wish_width), lacks);
    progress_.completed = *most;
    return is_behind;
  }
  /// All that an operation may have changed, and its result. Nothing of it counts before all is there, or nobody could begin
  /// again.
  template <class Lacks>
  void pass_on_state(int from, Lacks&& lacks) {
    double most_wished = wished();
    long step = self().step(), size = long(progress_.result.size());
    for (const auto word : {bytes_of(most_wished), bytes_of(step), bytes_of(size)}) pass_on(word, from, lacks);
    std::vector<std::byte> result = progress_.result;
    result.resize(std::size_t(size));
    const auto arrays = self().lasting_arrays();
    std::vector<std::vector<std::byte>> copies;
    for (const std::span<std::byte> each : arrays) copies.emplace_back(each.begin(), each.end());
    pass_on_all(result, from, lacks);
    for (std::vector<std::byte>& each : copies) pass_on_all(each, from, lacks);
    if (!lacks(processes_.rank())) return;
    self().set_step(step);
    progress_.result = std::move(result);
    for (std::size_t i = 0; i < copies.size(); ++i) std::ranges::copy(copies[i], arrays[i].begin());
    begin_to_wish(most_wished);
    self().parameters_changed();
  }
};

}  // namespace strata
