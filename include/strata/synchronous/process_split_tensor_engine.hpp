// The engine of one of the ranks that divide layers, where each rank computes its part of them in stages, in a process for each.
#pragma once
#include <strata/cpu/engine/split_tensor_engine.hpp>
#include <strata/synchronous/process_split_engine.hpp>

namespace strata {

namespace detail {
template <class Program, class Base, class Split, class Communicator>
  requires(classes_of_rank_in<typename Program::network::items> > 0)
struct use_of_predictions<Program, split_among<tensor_backend<Base>, Split, Communicator>>
    : use_of_predictions<Program, tensor_backend<Base>> {};
}  // namespace detail

namespace core {
/// The group has the processes with the same rank. ranks: one, with those at the same place.
template <class T, communicator Communicator>
struct process_split_tensor_options : tensor_options<T> {
  using given = tensor_options<T>;
  process_group_over<Communicator>* group = nullptr;  // it outlives the engine
  int first_groups = 1;                               // see process_split_options
};

/// A process sends activations and gradients to other stages of its rank, as in process_split_engine, and exchanges parts of
/// layers with the processes at the same place of other ranks. These have the same turns, as in split_tensor_engine.
template <class Program, class Backend>
class process_split_tensor_engine : public engine_of_rank<Program, process_split_engine<Program, Backend>> {
  using base = engine_of_rank<Program, process_split_engine<Program, Backend>>;
  using of_process = process_split_engine<Program, Backend>;
  using typename base::T;

 public:
  using options = process_split_tensor_options<T, typename Backend::communicator>;

  process_split_tensor_engine(const options& how, leaf_policy policy, int slots)
      : base({of_one_thread(how), how.group, how.first_groups}, policy, slots, how.ranks) {
    this->ranks_[std::size_t(this->place_)] = this->exchange_;
  }

  static constexpr int most_samples_of(const sizes_of_process& how) {
    return typename of_process::most_pieces(how.policy, how.batch, how.processes, 1, how.micro_batch).samples;
  }

  void begin(purpose why, const samples<T>& batch, philox random, int group = 0, int groups = 1) {
    this->exchange_->set_between_stages(false);
    base::begin(why, batch, random, group, groups);
    this->context_.ranks = this->exchange_;
  }
  template <class Done>
  void forward_backward(Done&& done) {
    this->exchange_->set_between_stages(true);
    of_process::forward_backward(done);
    this->exchange_->set_between_stages(false);
    this->share_penalties();
  }
  void update(const typename Program::optimizer& rules, long step, double rate, const global_gradient<T, host_device>& gradient) {
    rules.template with_rule<T>(
        step, rate, [&](const auto& rule) { this->apply_to_slices(rules, rule, rate, gradient, complete_norms_of(gradient)); });
    this->training_.weights_changed();
    this->has_old_copies_ = true;
  }
  /// The first part of the update: the rest sends nothing, unless the optimizer takes norms of directions.
  void take_gradient_norms(const typename Program::optimizer& rules, const global_gradient<T, host_device>& gradient) {
    this->take_norms_of_slices(rules, gradient, complete_norms_of(gradient));
  }
  void measure() {
    base::measure();
    this->share_penalties();
  }

 private:
  auto complete_norms_of(const global_gradient<T, host_device>& gradient) {
    return [this, &gradient](double* numbers, int arrays) {
      this->complete_norms(numbers, arrays, gradient);
      this->share_norms(numbers, arrays);
    };
  }
  static compute_options of_one_thread(compute_options how) {
    how.threads = 1;
    return how;
  }
};

template <class Program, class Base, class Split, class Communicator>
  requires(device_of<Base>::is_host)
struct engine_for<Program, split_among<tensor_backend<Base>, Split, Communicator>> {
  using type = process_split_tensor_engine<Program, split_among<tensor_backend<Base>, Split, Communicator>>;
};
}  // namespace core

}  // namespace strata
