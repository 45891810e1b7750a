// The reduction of a process group: leaf gradients of an engine in, the gradient of the global batch on its device out.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/base/arena.hpp>
#include <strata/base/empty.hpp>
#include <strata/exchange/gradient_bucket.hpp>
#include <strata/exchange/tree_reduction.hpp>
#include <strata/program/host_side.hpp>
#include <utility>
#include <vector>

namespace strata::detail {

/// Sums go through host memory, in the tree of tree_reduction. On the host gradients leave while others are being computed; those
/// of another device are copied when all are complete.
template <class Engine, communicator C>
class reduction_through_host : protected gradient_reduction {
  using T = typename Engine::value_type;
  using device = typename Engine::device;
  static constexpr bool on_host = device::is_host;
  static constexpr long size = layout_of_program<typename Engine::program>.trainable;

  tree_reduction<T, C, host_arithmetic_of<Engine>> tree_;
  T* sum_[1] = {};
  [[no_unique_address]] std::conditional_t<on_host, empty, typename device::template buffer<T>> on_device_;
  int leaves_ = 0;
  arena<T> kept_;

 public:
  static constexpr void add_memory(process_memory& to, const sizes_of_process& how, long elements, long window, long own,
                                   bool gathers) {
    decltype(tree_)::add_memory(to, how, elements, window, own, gathers);
  }
  /// For an engine that updates only slices, options.gathers is false.
  void prepare(C& c, const Engine& engine, std::vector<gradient_bucket> buckets, int leaves, reduction_options options) {
    tree_.prepare(c, std::move(buckets), leaves, options);
    if constexpr (!on_host) on_device_ = engine.on().template allocate<T>(std::size_t(size));
  }
  void drop_rounding_errors() { tree_.drop_rounding_errors(); }

  /// Must be called before the backward.
  void begin(const C& c, Engine& engine) {
    leaves_ = engine.leaves();
    if constexpr (on_host) tree_.begin(c, engine.gradients().arrays, leaves_);
  }
  /// Called by any thread when one more leaf is complete down to that group.
  void passed(C& c, int group) {
    if constexpr (on_host) tree_.passed(c, group);
  }
  /// All leaves are complete down to that group.
  void advance(C& c, host_side<Engine>& side, Engine& engine, int group = 0) {
    if constexpr (on_host) tree_.advance(c, side.team(engine), group);
  }
  global_gradient<T, device> finish(C& c, host_side<Engine>& side, Engine& engine, long samples) {
    if constexpr (on_host) {
      sum_[0] = tree_.finish(c, side.team(engine));
    } else {
      tree_.begin(c, side.gradients(engine).arrays, leaves_);
      const T* const sum = tree_.finish(c, side.team(engine));
      sum_[0] = on_device_.data();
      engine.on().copy_to_device(engine.queue(), std::span<const T>(sum, std::size_t(size)), sum_[0]);
    }
    return reduced<device>(sum_, 1, samples);
  }
  /// Copies the last sum, so that it outlives the memory for messages.
  [[gnu::cold]] void keep_sum(long elements)
    requires on_host
  {
    kept_ = arena<T>(std::size_t(elements));
    std::copy_n(sum_[0], elements, kept_.data());
    sum_[0] = kept_.data();
  }
};

/// Specialised by backends with collectives of their own.
template <class Engine, communicator C>
class process_reduction : public reduction_through_host<Engine, C> {};

}  // namespace strata::detail
