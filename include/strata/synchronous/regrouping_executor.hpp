// The executor of a mesh of processes that continues in other groups when processes are lost or join.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/communicators/elastic.hpp>
#include <strata/communicators/subgroup.hpp>
#include <strata/exchange/collective_operations.hpp>
#include <strata/program/counted_optimizer.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/initialize.hpp>
#include <strata/program/refused_divisions.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// An elastic_communicator whose processes form groups, each with one copy of the network. Members of complete groups have the
/// numbers 0 to computing() - 1, group after group; the others are spares.
///   `computing()`       the number of processes in complete groups
///   `lacking()`         numbers of those that were spares in the generation before
///   `set_spare(bool)`   whether this process lacks the newest state of the training; the next generation is formed accordingly
template <class C>
concept grouping_communicator = elastic_communicator<C> && requires(C c, const C& k) {
  { k.computing() } -> std::same_as<int>;
  { k.lacking() } -> std::convertible_to<const std::vector<int>&>;
  c.set_spare(true);
};

/// The executor of Division among all processes but the spares; it is made anew in each generation, from the arrays of the one
/// before. A step is computed without changing anything that lasts; then all processes tell each other that they have come so
/// far, and update. If one is lost before, the others repeat the step in groups that are complete; if only some have heard of all
/// others, the rest updates likewise, from the gradient at hand. So no process needs the arrays of another one, except when
/// groups grow: then the chief sends all of them. A spare takes part in all that processes agree on, hears the results, and gets
/// all parameters at the end of an epoch. Division: pipelines or tensor_ranks.
template <class Program, class Division, grouping_communicator C>
class regrouping_executor : public Division::template printed<Program>,
                            public executor_defaults,
                            public counted_optimizer<typename Program::optimizer>,
                            public collective_operations<regrouping_executor<Program, Division, C>, C> {
  using operations = collective_operations<regrouping_executor, C>;
  friend operations;
  using counted = counted_optimizer<typename Program::optimizer>;
  using T = typename Program::value_type;
  using operations::processes_;
  using typename operations::connections;
  using inner = typename Division::template executor<Program, subgroup<connections>>;
  static constexpr const auto& layout = layout_of_program<Program>;

  std::uint64_t seed_;
  compute_options compute_;
  std::unique_ptr<inner> inner_;              // null: this process is a spare, or late
  arena<T> whole_, slots_;                    // then all parameters, and what it received for the next executor
  bool is_whole_ = true;                      // all processes that compute have all parameters
  bool has_parameters_ = true;                // whole_ is up to date, in a spare
  int generation_ = 0, arranged_ = -1;        // of inner_
  typename connections::memory to_spares_{};  // the result of an operation
  // Set again in each new inner_.
  int batch_[2] = {};  // by purpose
  bool frozen_[layout.count + 1] = {}, is_frozen_ = false;
  kernel_observer* observer_ = nullptr;

 public:
  static constexpr executor_traits traits{.freezes = true, .collects_slots = true};

  regrouping_executor(typename Program::optimizer rule, std::uint64_t seed, const compute_options& compute, C processes)
      : counted(std::move(rule)), operations(std::move(processes)), seed_(seed), compute_(compute) {
    if (Division::divides_layers && this->is_elastic() && needs_norms(optimizer()))
      throw_error({Program::optimizer::name,
                   " takes norms of whole parameters while it updates, and several processes have parts of them, so that some "
                   "could update and others not: use another optimizer, or leave out elastic_options"});
    if (this->is_late()) {
      make_parameters();
    } else {
      operation({}, [&] { agree({}); });
    }
  }
  regrouping_executor(const regrouping_executor&) = delete;
  regrouping_executor& operator=(const regrouping_executor&) = delete;

  using counted::learning_rate, counted::optimizer, counted::step;
  using operations::communicating, operations::waiting;
  void set_step(long number) {
    counted::set_step(number);
    if (inner_) inner_->set_step(number);
  }
  void set_learning_rate(double rate) {
    counted::set_learning_rate(rate);
    if (inner_) inner_->set_learning_rate(rate);
  }
  std::uint64_t seed() const { return seed_; }
  static void drop_rounding_errors() {}
  void observe(kernel_observer* observer) {
    observer_ = observer;
    if (inner_) inner_->observe(observer);
  }
  void freeze(std::span<const bool> slots) {
    is_frozen_ = true;
    std::ranges::copy(slots.first(std::size_t(layout.count)), frozen_);
    if (inner_) inner_->freeze(slots);
  }
  row_choice own_rows() const {
    if (this->is_elastic()) return {};  // a step that is begun again may be shared by fewer
    return inner_->own_rows();
  }
  row_writers writers() const {
    if (this->is_elastic()) return {};  // threads end with inner_
    return inner_->writers();
  }

  void prepare(int batch, purpose why) {
    batch_[int(why)] = std::max(batch_[int(why)], batch);
    if (inner_ && arranged_ == generation_) inner_->prepare(batch, why);
  }

  metric_sums<Program> train_step(const samples<T>& batch) {
    is_whole_ = has_parameters_ = false;
    metric_sums<Program> sums{};
    const long at = step();
    operation(this->bytes_of(sums), [&] {
      if (inner_) sums = inner_->begin_step(batch);
      STRATA_TRY { agree(this->bytes_of(sums), true); }
      STRATA_CATCH(const communication_error&) {  // the others may have heard of all
        if (inner_) inner_->keep_reduced_gradient();
        STRATA_THROW_AGAIN;
      }
    });
    if (inner_) {
      inner_->set_step(at);
      inner_->end_step();
    }
    counted::set_step(at + 1);
    return sums;
  }
  metric_sums<Program> finish() {
    operation({}, [&] {
      if (inner_) inner_->finish();
      send_parameters_to_spares();
      agree({});
    });
    is_whole_ = has_parameters_ = true;
    return {};
  }
  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    if (!is_whole_) finish();
    metric_sums<Program> sums{};
    operation(this->bytes_of(sums), [&] {
      if (inner_) sums = inner_->evaluate_step(batch);
      agree(this->bytes_of(sums));
    });
    return sums;
  }
  /// A spare gets the predictions of the others if a process does not compute them alone; otherwise it throws
  /// strata_error.
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    if constexpr (Division::divides_layers) {
      operation({}, [&] {
        if (inner_) inner_->predict(batch, out);
        send_predictions_to_spares(batch.count, out);
        agree({});
      });
    } else {
      if (!inner_) throw_error("this process is waiting for others to form a group with the whole network, so it cannot predict");
      inner_->predict(batch, out);
    }
  }

  /// Throws strata_error after a step, until finish(), evaluate_step() or collect_slots() is called in all processes; in
  /// a spare until finish() or evaluate_step() is.
  std::span<T> parameters() {
    if (inner_) return inner_->parameters();
    refuse_old_parameters();
    return whole_.span();
  }
  std::span<const T> parameters() const {
    if (inner_) return std::as_const(*inner_).parameters();
    refuse_old_parameters();
    return whole_.span();
  }
  void parameters_changed() {
    is_whole_ = has_parameters_ = true;
    if (inner_) inner_->parameters_changed();
  }
  /// See tensor_executor. In a process that joins, the state from the others is written to these, and to parameters().
  std::span<T> whole_slots() {
    if (inner_) return inner_->whole_slots();
    slots_.grow(std::size_t(layout.trainable) * std::size_t(optimizer().slots()));
    return slots_.span();
  }
  void collect_slots(bool in_all = false) {
    operation({}, [&] {
      if (inner_) inner_->collect_slots(in_all);
      agree({});
    });
    is_whole_ = true;
  }
  void clear_slots() {
    operation({}, [&] {
      if (inner_) inner_->clear_slots();
      agree({});
    });
    std::ranges::fill(slots_.span(), T(0));
    is_whole_ = true;
  }

 private:
  void refuse_old_parameters() const {
    if (!has_parameters_) detail::refuse_divided_parameters("divided layers");
  }

  /// Runs a collective operation, in complete groups.
  template <class F>
  void operation(std::span<std::byte> result, F&& f) {
    this->together(result, [&] {
      arrange();
      f();
    });
  }
  bool is_spare(int rank) const { return rank >= processes_.computing(); }

  /// The last messages of an operation: each process learns that all others have come so far, and spares get the result.
  void agree(std::span<std::byte> result, bool is_step = false) {
    const int all = processes_.size(), rank = processes_.rank();
    const bool receives = is_spare(rank) && !result.empty();
    if (rank == 0 && !result.empty() && is_spare(all - 1)) {
      std::memcpy(to_spares_.data(), result.data(), result.size());
      for (int r = processes_.computing(); r < all; ++r) processes_.send(to_spares_, 0, result.size(), r);
    }
    if (receives) processes_.receive(to_spares_, 0, result.size(), 0);
    if (is_step) {
      this->exchange_votes();
    } else {
      this->announce_operation();
      processes_.wait("the end of an operation");
    }
    if (receives) std::memcpy(result.data(), to_spares_.data(), result.size());
  }

  /// Makes the executor of this generation, if it is not there yet.
  void arrange() {
    if (arranged_ == generation_) return;
    const int rank = processes_.rank();
    if (is_spare(processes_.size() - 1)) to_spares_ = processes_.allocate(sizeof(metric_sums<Program>));
    if (is_spare(rank)) {
      processes_.set_spare(true);
      if (inner_) {
        if (is_whole_) keep_parameters();
        inner_ = nullptr;
      } else if (whole_.size() == 0) {
        make_parameters();
      }
      arranged_ = generation_;
      return;
    }
    const int computing = processes_.computing();
    const int groups_now = generation_ == 0 ? Division::groups : computing / Division::places();
    std::unique_ptr<inner> next(new inner(Division::template make<Program>(subgroup<connections>(processes_, 0, 1, computing),
                                                                           optimizer(), seed_, compute_, groups_now)));
    if (inner_) {
      next->take_state(*inner_, is_whole_);
    } else if (whole_.size() > 0) {
      std::ranges::copy(whole_.span(), next->parameters().data());
      if (slots_.size() > 0) std::ranges::copy(slots_.span(), next->whole_slots().data());
      next->parameters_changed();
      whole_ = {}, slots_ = {};
    }
    next->set_step(step());
    if (const auto rate = this->learning_rate_by_hand()) next->set_learning_rate(*rate);
    if (is_frozen_) next->freeze(std::span<const bool>(frozen_, std::size_t(layout.count)));
    next->observe(observer_);
    inner_ = std::move(next);  // so that there is room for what steps need
    for (const purpose why : {purpose::training, purpose::inference})
      if (const int batch = batch_[int(why)]; batch > 0) inner_->prepare(batch, why);
    arranged_ = generation_;
  }
  void make_parameters() {
    whole_ = arena<T>(std::size_t(layout.size));
    initialize_parameters(layout, whole_.span(), seed_);
  }
  void keep_parameters() {
    whole_ = arena<T>(std::size_t(layout.size));
    std::ranges::copy(inner_->parameters(), whole_.data());
    has_parameters_ = true;
  }

  void send_parameters_to_spares() {
    if (!is_spare(processes_.size() - 1)) return;
    std::span<T> all;
    if (processes_.rank() == 0) all = inner_->parameters();
    if (is_spare(processes_.rank())) {
      whole_.grow(std::size_t(layout.size));
      all = whole_.span();
    }
    if (!all.empty()) send_by_chief(all, [&](int rank) { return is_spare(rank); });
  }
  /// Requires that all processes want the same outputs.
  void send_predictions_to_spares(int count, const output_rows<T>& out) {
    const int rank = processes_.rank();
    if (!is_spare(processes_.size() - 1) || !(rank == 0 || is_spare(rank))) return;
    constexpr const end_sizes& ends = ends_of_program<Program>;
    for (int k = 0; k < ends.output_count; ++k)
      if (T* rows = out.at[k])
        send_by_chief(std::span(rows, std::size_t(count) * std::size_t(ends.outputs[k])), [&](int r) { return is_spare(r); });
  }
  template <class Receives>
  void send_by_chief(std::span<T> elements, Receives&& receives) {
    this->in_pieces(std::as_writable_bytes(elements), [&](std::span<std::byte> piece) { this->send_piece(piece, 0, receives); });
  }

  // The members of an elastic executor that operations requires.

  void forget_messages() { ++generation_; }
  static void prepare_messages(int, purpose) {}
  static std::array<std::span<std::byte>, 2> lasting_arrays() { return {}; }
  void before_admission() { collect_slots(); }
  /// Sends all parameters and slots to spares that are in a group again.
  void after_admission() {
    const std::vector<int>& lacking = processes_.lacking();
    const auto receives = [&](int rank) { return std::ranges::find(lacking, rank) != lacking.end(); };
    const bool is_receiver = receives(processes_.rank());
    if (lacking.empty() || !(is_receiver || processes_.rank() == 0)) return;
    STRATA_TRY {
      if (is_receiver) whole_.grow(std::size_t(layout.size)), has_parameters_ = true;
      send_by_chief(parameters(), receives);
      send_by_chief(whole_slots(), receives);
      if (!is_receiver) return;
      processes_.set_spare(false);
    }
    STRATA_CATCH(const communication_error& e) {
      if (is_receiver) has_parameters_ = false;
      this->form_again(e.what());
    }
  }
};

}  // namespace strata::core
