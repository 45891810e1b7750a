// One shard as its server keeps it: weights, the optimizer's state, and how a gradient changes them.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/concepts/device.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/parameter_server/parameter_rows.hpp>
#include <strata/parameter_server/parameter_shards.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::detail {

/// Not thread-safe; weights that were lent stay as they are.
template <class T, optimizer Optimizer, class Host>
class stored_shard {
  using weight_update = typename Host::template update<T, Optimizer>;

 public:
  stored_shard(const parameter_shard& place, std::span<const parameter_range> trained, std::span<const row_table> tables,
               const Optimizer& rules)
      : place_(place),
        contents_(place, tables),
        rules_(rules),
        now_(std::make_shared<version_of_weights>(std::size_t(place.size()))),
        slots_(std::size_t(place.size()) * std::size_t(rules.slots())) {
    for (const parameter_range& r : trained)
      if (const long begin = std::max(r.begin, place.begin), end = std::min(r.end, place.end); begin < end)
        trained_.push_back({.begin = begin - place.begin,
                            .end = end - place.begin,
                            .regularizer = r.regularizer,
                            .elements = std::min(r.begin + r.elements, place.end) - begin,
                            .rows = r.rows,
                            .columns = r.columns});
    if (takes_norms(rules)) norms_ = arena<double>(std::size_t(weight_update::norm_count(trained_, place.begin)));
  }

  const parameter_shard& place() const { return place_; }
  const shard_contents& contents() const { return contents_; }
  /// Updates so far; -1: no weights were assigned.
  std::int64_t version() const { return version_; }
  std::size_t bytes() const { return std::size_t(place_.size()) * sizeof(T); }

  std::span<const T> weights() const { return std::as_const(now_->weights).span(); }
  std::span<T> slots() { return slots_.span(); }
  std::span<const T> slots() const { return slots_.span(); }
  /// All weights, for as long as the pointer lives. Nothing is copied.
  std::shared_ptr<const T> lend() const {
    now_->readers.fetch_add(1, std::memory_order_relaxed);
    return {weights().data(), [held = now_](const T*) { held->readers.fetch_sub(1, std::memory_order_release); }};
  }
  /// A copy of some weights, one run after the other.
  std::shared_ptr<const T> copy(std::span<const element_run> runs) const {
    const auto some = std::make_shared<T[]>(std::size_t(count_elements(runs)));
    pack(weights().data(), runs, some.get());
    return {some, some.get()};
  }

  /// The weights, to be overwritten. The optimizer's state stays.
  std::span<T> overwrite() {
    own_weights();
    version_ = std::max<std::int64_t>(version_, 0);
    is_settled_ = false;
    return now_->weights.span();
  }
  /// Sets the version from a snapshot; -1 makes the shard as good as new.
  void set_version(std::int64_t version) {
    version_ = version;
    is_settled_ = false;
    if (version < 0) std::ranges::fill(slots_.span(), T(0));
  }

  /// One step of the optimizer. The gradient is zero outside of `slices`. An optimizer that takes norms overwrites it; in tables
  /// it is zero then.
  void apply(const global_gradient<T, host_device>& gradient, std::span<const element_run> slices, double rate) {
    const typename Host::scope scope;
    own_weights();
    rules_.template with_rule<T>(version_, rate, [&](const auto& rule) {
      using rule_type = std::remove_cvref_t<decltype(rule)>;
      T* slots[rule_type::slots + 1] = {};
      for (int k = 0; k < rule_type::slots; ++k) slots[k] = slots_.data() + k * place_.size();
      const weight_update all{rules_, rate, trained_, now_->weights.data(), slots, norms_.data(), place_.begin};
      if (contents_.has_tables() && is_settled_ && keeps_weights_without_gradient(rule, rate))
        all.run(rule, gradient, [&](auto&& pass) {
          for (const element_run& some : slices) pass(some.begin, some.end);
        });
      else
        all.run(rule, gradient, [&](auto&& pass) { pass(0, place_.size()); });
    });
    // The gradient was overwritten, and the next push writes only the rows that it names.
    if (takes_norms(rules_) && contents_.has_tables()) std::fill_n(gradient.arrays()[0], place_.size(), T(0));
    is_settled_ = true;
    ++version_;
  }

 private:
  /// Weights that are not written while they have readers.
  struct version_of_weights {
    arena<T> weights;
    std::atomic<int> readers{0};
    explicit version_of_weights(std::size_t size) : weights(size) {}
  };

  /// Copy on write: answers that are still being sent keep the old weights.
  void own_weights() {
    if (now_->readers.load(std::memory_order_acquire) == 0) return;
    auto copy = std::make_shared<version_of_weights>(now_->weights.size());
    std::ranges::copy(weights(), copy->weights.data());
    now_ = std::move(copy);
  }

  /// True if this step does not change weights without a gradient, so that rows without one need no update. The rule treats all
  /// elements alike, so testing a few weights of all magnitudes is enough.
  template <class Rule>
  bool keeps_weights_without_gradient(const Rule& rule, double rate) const {
    if (Rule::slots > 0 || takes_norms(rules_)) return false;
    using limits = std::numeric_limits<T>;
    constexpr T some[slice_alignment / 2] = {0, limits::min(), T(1e-20), T(1e-5), T(0.7), 1, T(1e4), limits::max()};
    alignas(64) T weights[slice_alignment], before[slice_alignment], gradient[slice_alignment] = {};
    for (std::size_t i = 0; i < std::size(some); ++i) weights[2 * i] = some[i], weights[2 * i + 1] = -some[i];
    std::memcpy(before, weights, sizeof before);
    T *no_slots[1] = {}, *leaf[1] = {gradient};
    const parameter_range place{0, slice_alignment};
    const weight_update update{rules_, rate, {&place, 1}, weights, no_slots};
    const leaf_gradients<T, host_device> zeros{leaf, 1, 0, 1, 1};
    update.run(rule, whole_batch_reduction::reduce(zeros, 1), [](auto&& pass) { pass(0, slice_alignment); });
    return std::memcmp(before, weights, sizeof before) == 0;
  }

  parameter_shard place_;
  std::vector<parameter_range> trained_;  // within the shard
  shard_contents contents_;
  const Optimizer& rules_;
  std::shared_ptr<version_of_weights> now_;
  arena<T> slots_;
  arena<double> norms_;
  std::int64_t version_ = -1;
  bool is_settled_ = false;  // an update has passed over all assigned weights; the first one flushes denormal ones
};

}  // namespace strata::detail
