// The process group of a synchronous executor, and how an elastic one continues after processes are lost or join.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/base/empty.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/text.hpp>
#include <strata/communicators/elastic.hpp>
#include <strata/communicators/timed.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/concepts/process_group.hpp>
#include <strata/exchange/leaf_exchange.hpp>
#include <strata/exchange/solo_operations.hpp>
#include <strata/program/plan.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::core {

/// Base of a synchronous executor Self, and its process group. Self has `step()`, `set_step(step)`, `parameters_changed()`,
/// `lasting_arrays()` (the bytes of parameters and slots), `prepare_messages(leaves, purpose)` and `forget_messages()`; and
/// `before_admission()` and `after_admission()`, which all members call before and after the generation that takes others in.
/// The two are empty where each process has the whole network.
template <class Self, communicator Communicator>
class collective_operations {
 protected:
  static constexpr bool among_processes = true, may_be_elastic = elastic_communicator<Communicator>;
  using connections = detail::timed<Communicator>;

 public:
  collective_operations& group() { return *this; }
  const collective_operations& group() const { return *this; }

  /// Seconds so far of sending messages, and of waiting for them.
  double communicating() const { return processes_.communicating(); }
  double waiting() const { return processes_.waiting(); }

  int rank() const { return processes_.rank(); }
  int size() const { return processes_.size(); }
  bool is_chief() const { return rank() == 0; }

  void broadcast(std::span<std::byte> bytes) {
    in_pieces(bytes, [&](std::span<std::byte> piece) {
      together(piece, [&] {
        announce_operation();
        send_piece(piece, 0, [](int rank) { return rank != 0; });
      });
    });
  }
  std::vector<double> gather(std::span<const double> values) {
    // In front: the number of processes, since an elastic group may shrink meanwhile.
    std::vector<double> all(1 + values.size() * std::size_t(first_size(processes_)));
    together(std::as_writable_bytes(std::span(all)), [&] {
      const auto values_of = [&](int rank) { return all.data() + 1 + std::size_t(rank) * values.size(); };
      all[0] = processes_.size();
      std::ranges::copy(values, values_of(processes_.rank()));
      gathering_.prepare(processes_, values.size(), processes_.size());
      gathering_.begin(processes_, processes_.size(), values.size(), values_of);
      processes_.wait("an agreement");
      gathering_.finish(processes_, processes_.size(), values.size(), values_of);
    });
    return {all.begin() + 1, all.begin() + 1 + long(all[0]) * long(values.size())};
  }
  void barrier() {
    const double none = 0;
    gather(std::span(&none, 1));
  }
  /// The first call has to come between the same two steps in all processes.
  void vote(bool yes) {
    vote_ = yes;
    if (votes_.empty() && !is_elastic()) begin_to_vote();
  }
  bool vote_result() const {
    for (std::size_t i = 0; i < votes_.size(); i += vote_width)
      if (votes_[i] > 0) return true;
    return false;
  }

  /// Announces to the others an error with which this program may end; empty: it continues.
  void announce_error([[maybe_unused]] const std::string& what) {
    if constexpr (announcing_communicator<Communicator>) processes_.announce_error(what);
  }
  /// Tells the others about work for which they may have to wait, however long it takes; empty: it is done.
  void announce_work([[maybe_unused]] const std::string& what) const {
    if constexpr (announcing_communicator<Communicator>) processes_.announce_work(what);
  }

  // The members of an elastic_group.

  bool is_elastic() const {
    if constexpr (may_be_elastic) return processes_.is_elastic();
    return false;
  }
  bool is_late() const {
    if constexpr (may_be_elastic) return progress_.is_late;
    return false;
  }
  /// Throws communication_error if the others do not admit this process, or are lost meanwhile.
  void join() {
    if constexpr (may_be_elastic) {
      processes_.enter();
      catch_up();
    }
  }
  void has_caught_up() {
    if constexpr (may_be_elastic) progress_.is_late = false;
  }
  /// Acts on the announcement that the chief sent along with the last step.
  bool admit() {
    if constexpr (may_be_elastic) {
      if (!is_elastic() || votes_[1] == 0) return false;
      self().before_admission();
      form_again("a process joins the training");
      self().after_admission();
      return !processes_.newcomers().empty();
    }
    return false;
  }
  /// Does not fail if the newcomers are lost: the others continue.
  void broadcast_to_newcomers([[maybe_unused]] std::span<std::byte> bytes) {
    if constexpr (may_be_elastic) {
      const auto is_new = [&](int rank) {
        return std::ranges::find(processes_.newcomers(), rank) != processes_.newcomers().end();
      };
      if (processes_.newcomers().empty() || (!is_chief() && !is_late())) return;
      STRATA_TRY {
        in_pieces(bytes, [&](std::span<std::byte> piece) { send_piece(piece, 0, is_new); });
      }
      STRATA_CATCH(const communication_error& e) {
        if (is_late()) STRATA_THROW_AGAIN;
        form_again(e.what());
      }
    }
  }
  int finished_fits() const {
    if constexpr (may_be_elastic) return progress_.fits;
    return 0;
  }
  /// A process that lags by an operation may still need its result from the others, so an elastic fit ends with a barrier.
  void leave() {
    if constexpr (may_be_elastic) {
      if (!is_elastic()) return;
      ++progress_.fits;
      STRATA_TRY { barrier(); }
      STRATA_CATCH(const communication_error& failure) {  // the others have ended already, and need nothing
      }
    }
  }

 protected:
  explicit collective_operations(Communicator processes) : processes_(std::move(processes)) {
    if constexpr (may_be_elastic) {
      progress_.is_late = processes_.is_late(), progress_.starts_again = processes_.starts_again();
      if (is_elastic() && !progress_.is_late) begin_to_vote();
    }
  }

  connections processes_;

  /// Runs an operation in which all processes take part; `result` are the bytes that it computes. If processes of an elastic
  /// group are lost, the others run it again, unless one of them has completed it: then this process takes its state. No process
  /// can be ahead by two operations, because each operation needs a message from every process.
  template <class Operation>
  void together([[maybe_unused]] std::span<std::byte> result, Operation&& operation) {
    if constexpr (may_be_elastic) {
      if (is_elastic()) {
        if (is_late())
          throw_error("the training has already begun: a worker that joins late has to call fit before anything else");
        for (;;) {
          bool is_behind = false;
          STRATA_TRY {
            if (std::exchange(progress_.starts_again, false)) is_behind = catch_up();
            if (!is_behind) {
              operation();
              return progress_.complete(result);
            }
          }
          STRATA_CATCH(const communication_error& e) { is_behind = form_again(e.what()); }
          if (is_behind) return void(std::ranges::copy(progress_.result, result.begin()));
        }
      }
    }
    operation();
  }

  /// Sends a message to every process, for an operation that needs none from some of them otherwise. See `together`.
  void announce_operation() {
    if constexpr (may_be_elastic) {
      if (!is_elastic()) return;
      progress_.unread.resize(votes_.size());
      begin_votes(progress_.unread);
    }
  }

  /// Sends the vote of this process along with a step; `receive_votes` must be called after the wait for the others' messages.
  void send_votes() {
    if (votes_.empty()) return;
    votes_[vote_width * std::size_t(processes_.rank())] = vote_;
    if constexpr (may_be_elastic) votes_[1] = is_chief() && processes_.late_one_waits();
    begin_votes(votes_);
  }
  void receive_votes() {
    if (!votes_.empty()) finish_votes(votes_);
  }
  /// Sends and receives the votes, if a step has no messages of its own. See process_group.
  void exchange_votes() {
    send_votes();
    processes_.wait("votes");
    receive_votes();
  }
  /// Records the number of leaves for which there has to be memory for messages. Returns true if there are processes to send to.
  bool may_prepare_messages([[maybe_unused]] int leaves, [[maybe_unused]] purpose why) {
    if constexpr (may_be_elastic) {
      progress_.leaves[int(why)] = leaves;
      return !processes_.is_late();
    }
    return true;
  }
  static int first_size(const Communicator& processes) {
    if constexpr (knows_first_size<Communicator>)
      return processes.first_size();
    else
      return processes.size();
  }
  static std::span<std::byte> bytes_of(auto& one) { return std::as_writable_bytes(std::span(&one, 1)); }

  template <class F>
  static void in_pieces(std::span<std::byte> bytes, F&& f) {
    constexpr std::size_t most = std::size_t{1} << 20;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(most, bytes.size()))) f(bytes.first(std::min(most, bytes.size())));
  }
  /// Sends a piece from process `from` to those for which `lacks(rank)` is true.
  template <class Lacks>
  void send_piece(std::span<std::byte> piece, int from, Lacks&& lacks) {
    auto memory = processes_.allocate(piece.size());
    const int rank = processes_.rank();
    if (rank == from) {
      std::ranges::copy(piece, memory.data());
      for (int r = 0; r < processes_.size(); ++r)
        if (lacks(r)) processes_.send(memory, 0, piece.size(), r);
    } else if (lacks(rank)) {
      processes_.receive(memory, 0, piece.size(), from);
    }
    processes_.wait("the state of the others");
    if (rank != from && lacks(rank)) std::copy_n(memory.data(), piece.size(), piece.data());
  }

  /// Connects the remaining processes as the next generation and brings all to the same operation. Returns true if this process
  /// was behind; then it has received the result of the operation that it has not completed itself. Throws communication_error if
  /// the training cannot continue.
  bool form_again(std::string why)
    requires may_be_elastic
  {
    for (;;) {
      if (++progress_.attempts > elastic_progress::most_attempts) throw_exception(communication_error(why));
      processes_.form_again(why);
      STRATA_TRY { return catch_up(); }
      STRATA_CATCH(const communication_error& e) {  // another process is lost
        why = e.what();
      }
    }
  }

 private:
  /// In an elastic group the chief sends a second value: whether a process waits to join.
  static constexpr std::size_t vote_width = may_be_elastic ? 2 : 1;

  leaf_exchange<connections> vote_exchange_, gathering_;
  double vote_ = 0;
  std::vector<double> votes_;  // of all processes in the last step; empty until the first vote
  [[no_unique_address]] std::conditional_t<may_be_elastic, elastic_progress, detail::empty> progress_;

  Self& self() { return static_cast<Self&>(*this); }

  void begin_votes(std::vector<double>& all) {
    vote_exchange_.begin(processes_, processes_.size(), vote_width, [&](int r) { return &all[vote_width * std::size_t(r)]; });
  }
  void finish_votes(std::vector<double>& all) {
    vote_exchange_.finish(processes_, processes_.size(), vote_width, [&](int r) { return &all[vote_width * std::size_t(r)]; });
  }

  void begin_to_vote(double result = 0) {
    votes_.assign(vote_width * std::size_t(processes_.size()), 0);
    votes_[0] = result;
    vote_exchange_.prepare(processes_, vote_width, processes_.size());
  }
  bool catch_up()
    requires may_be_elastic
  {
    self().forget_messages();
    vote_exchange_ = {}, gathering_ = {};
    begin_to_vote(vote_result());
    for (const purpose why : {purpose::training, purpose::inference})
      if (const int leaves = progress_.leaves[int(why)]; leaves > 0) self().prepare_messages(leaves, why);

    constexpr double nothing_yet = -1;
    std::vector<double> completed(votes_.size(), is_late() ? nothing_yet : progress_.completed);
    begin_votes(completed);
    processes_.wait("the progress of the others");
    finish_votes(completed);
    const auto most = std::ranges::max_element(completed);
    const auto lacks = [&](int rank) {
      const double its = completed[vote_width * std::size_t(rank)];
      return its != nothing_yet && its != *most;
    };
    const bool is_behind = lacks(processes_.rank());
    if (is_behind && progress_.completed + 1 != *most)
      throw_error({"a process has completed ", long(*most), " operations, but this process ", long(progress_.completed)});
    bool one_is_behind = false;
    for (int r = 0; r < processes_.size(); ++r) one_is_behind = one_is_behind || lacks(r);
    if (one_is_behind) send_state(int(most - completed.begin()) / int(vote_width), lacks);
    progress_.completed = *most;
    return is_behind;
  }
  /// Sends all that an operation may have changed, and its result. The receiver changes nothing before all of it has arrived, so
  /// that it can start again when the sender is lost.
  template <class Lacks>
  void send_state(int from, Lacks&& lacks) {
    double result_of_vote = vote_result();
    long step = self().step(), size = long(progress_.result.size());
    const auto send = [&](std::span<std::byte> bytes) {
      in_pieces(bytes, [&](std::span<std::byte> piece) { send_piece(piece, from, lacks); });
    };
    for (const auto word : {bytes_of(result_of_vote), bytes_of(step), bytes_of(size)}) send(word);
    std::vector<std::byte> result = progress_.result;
    result.resize(std::size_t(size));
    const auto arrays = self().lasting_arrays();
    std::vector<std::vector<std::byte>> copies;
    for (const std::span<std::byte> each : arrays) copies.emplace_back(each.begin(), each.end());
    send(result);
    for (std::vector<std::byte>& each : copies) send(each);
    if (!lacks(processes_.rank())) return;
    self().set_step(step);
    progress_.result = std::move(result);
    for (std::size_t i = 0; i < copies.size(); ++i) std::ranges::copy(copies[i], arrays[i].begin());
    begin_to_vote(result_of_vote);
    if (!arrays[0].empty()) self().parameters_changed();
  }
};

}  // namespace strata::core
