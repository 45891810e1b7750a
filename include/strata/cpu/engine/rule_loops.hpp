// Loops that apply the rule of an optimizer to elements of the arenas. Elements are independent.
#pragma once
#include <algorithm>
#include <strata/concepts/device.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/cpu/engine/elementwise_of_vectors.hpp>
#include <strata/cpu/engine/sum_leaves.hpp>
#include <strata/cpu/simd/vector_math.hpp>
#include <strata/kernel/gradient_sink.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace detail {

/// Other cores have just read the weights, so a store must wait until their copies of the cache line are invalidated. The update
/// requests lines this many elements ahead.
inline constexpr long weights_ahead = 256;

/// to[i - begin] = the mean gradient of element i with all modifiers applied. The loop of the rule is compiled for each rule,
/// this one once.
template <class T>
[[gnu::noinline]] void modify_gradient(T* to, const T* w, const T* sums, sample_mean<T> mean, const gradient_modifiers<T>& m,
                                       long begin, long end) {
  using V = simd::vec<T>;
  for (long i = begin; i < end; i += simd::lanes<T>)
    simd::store(to + (i - begin), modified(mean.of(V(simd::load(sums + (i - begin)))), simd::load(w + i), m).value());
}

/// Calls f(gradients, mean, begin, end) for blocks of the slice, where mean.of(gradients) has all modifiers applied.
template <class T, class F>
void for_modified_blocks(const global_gradient<T, host_device>& gradient, const T* w, const gradient_modifiers<T>& m, long begin,
                         long end, F&& f) {
  const bool as_it_is = m.keep_gradient();
  if (as_it_is && gradient.count() == 1) return f(gradient.arrays()[0] + begin, gradient.mean(), begin, end);
  for_blocks(gradient.arrays(), gradient.count(), begin, end, [&](const T* sums, long from, long to) {
    if (as_it_is) return f(sums, gradient.mean(), from, to);
    alignas(64) T modified[update_block];
    modify_gradient(modified, w, sums, gradient.mean(), m, from, to);
    f(modified, after_reduction::applied(gradient.mean()), from, to);
  });
}

/// Updates one vector of weights and state, from its gradient before the mean is taken. Decays the weights first.
template <class T, class Rule, int... Slot>
STRATA_INLINE inline void apply_rule_at(const Rule& rule, T* w, [[maybe_unused]] T* const* slot, simd::vec<T> sum,
                                        sample_mean<T> mean, T weight_decay, long i) {
  using V = simd::vec<T>;
  V weight = simd::load(w + i);
  weight -= product(weight, weight_decay);
  V state[sizeof...(Slot) + 1] = {simd::load(slot[Slot] + i)...};
  rule(weight, mean.of(sum), state[Slot]...);
  (simd::store(slot[Slot] + i, state[Slot]), ...);
  simd::store(w + i, weight);
}

/// The first pass of a parameterwise_rule: decays weights, updates slots, stores directions.
template <class T, class Rule, int... Slot>
void propose_directions(Rule rule, T* w, T* const* slots, const T* sums, T* directions, sample_mean<T> mean, T weight_decay,
                        long begin, long end, std::integer_sequence<int, Slot...>) {
  using V = simd::vec<T>;
  T* const slot[sizeof...(Slot) + 1] = {slots[Slot]...};
  for (long i = begin; i < end; i += simd::lanes<T>) {
    V weight = simd::load(w + i);
    weight -= product(weight, weight_decay);
    V state[sizeof...(Slot) + 1] = {simd::load(slot[Slot] + i)...};
    simd::store(directions + i, rule.propose(weight, mean.of(V(simd::load(sums + (i - begin)))), state[Slot]...));
    (simd::store(slot[Slot] + i, state[Slot]), ...);
    simd::store(w + i, weight);
  }
}

template <class T, class Rule, int... Slot>
void apply_rule(Rule rule, T* w, T* const* slots, const T* sums, sample_mean<T> mean, T weight_decay, long begin, long end,
                std::integer_sequence<int, Slot...>) {
  T* const slot[sizeof...(Slot) + 1] = {slots[Slot]...};  // copies that no store can change
  for (long i = begin; i < end; i += simd::lanes<T>) {
    __builtin_prefetch(w + i + weights_ahead, 1);
    apply_rule_at<T, Rule, Slot...>(rule, w, slot, simd::load(sums + (i - begin)), mean, weight_decay, i);
  }
}

/// to[i] = the mean gradient of element i with all modifiers applied.
template <class T>
void store_modified_gradient(T* to, const global_gradient<T, host_device>& gradient, const T* w, const gradient_modifiers<T>& m,
                             long begin, long end) {
  for_modified_blocks(gradient, w, m, begin, end, [&](const T* sums, sample_mean<T> mean, long from, long stop) {
    for (long i = from; i < stop; i += simd::lanes<T>)
      simd::store(to + i, mean.of(simd::vec<T>(simd::load(sums + (i - from)))).value());
  });
}

/// The last pass of a parameterwise_rule or a factored_rule.
template <class T, class Rule, class Scale, int... Slot>
void apply_directions(Rule rule, T* w, [[maybe_unused]] T* const* slots, const T* directions, Scale scale, long begin, long end,
                      std::integer_sequence<int, Slot...>) {
  [[maybe_unused]] T* const slot[sizeof...(Slot) + 1] = {slots[Slot]...};
  for (long i = begin; i < end; i += simd::lanes<T>) {
    simd::vec<T> weight = simd::load(w + i), state[sizeof...(Slot) + 1] = {simd::load(slot[Slot] + i)...};
    rule.apply(weight, simd::load(directions + i), scale, state[Slot]...);
    (simd::store(slot[Slot] + i, state[Slot]), ...);
    simd::store(w + i, weight);
  }
}

/// The matrix that begins at element `begin`. If there are fewer than Count samples, the last one repeats with x = 0. A zero sum
/// has no sign, as in the gradients that dense layers store.
template <int Count, class T, class Rule, int... Slot>
void apply_rule_to_product(Rule rule, T* w, T* const* slots, gradient_product<T> p, sample_mean<T> mean, T weight_decay,
                           long begin, std::integer_sequence<int, Slot...>) {
  using V = simd::vec<T>;
  T* const slot[sizeof...(Slot) + 1] = {slots[Slot]...};
  const T* dz[Count];
  for (int n = 0; n < Count; ++n) dz[n] = p.dz + std::min(n, p.count - 1) * std::ptrdiff_t(p.columns);
  for (int k = 0; k < p.rows; ++k, begin += p.columns) {
    V x[Count];
    STRATA_UNROLL
    for (int n = 0; n < Count; ++n) x[n] = n < p.count ? simd::broadcast(p.x[n * std::ptrdiff_t(p.rows) + k]) : V{};
    for (int j = 0; j < p.columns; j += simd::lanes<T>) {
      V sum{};
      STRATA_UNROLL
      for (int n = 0; n < Count; ++n) sum = simd::multiply_add(x[n], simd::load(dz[n] + j), sum);
      apply_rule_at<T, Rule, Slot...>(rule, w, slot, sum + V{}, mean, weight_decay, begin + j);
    }
  }
}

/// to[j - from] = element (row, j) of the same gradient, for columns [from, end).
template <class T>
void multiply_out(T* to, const gradient_product<T>& p, int row, int from, int end) {
  using V = simd::vec<T>;
  for (int j = from; j < end; j += simd::lanes<T>) {
    V sum{};
    for (int n = 0; n < p.count; ++n)
      sum = simd::multiply_add(simd::broadcast(p.x[n * std::ptrdiff_t(p.rows) + row]),
                               simd::load(p.dz + n * std::ptrdiff_t(p.columns) + j), sum);
    simd::store(to + (j - from), sum + V{});
  }
}

/// An elementwise_rule with its type erased, so that only the loops over its elements are compiled for each rule, not the code
/// around them. Some optimizers choose one of two rules at run time. Refers to the rule, which must outlive it.
template <class T>
class loops_of_rule {
  using apply_function = void(const void* rule, T* w, T* const* slots, const T* sums, sample_mean<T> mean, T weight_decay,
                              long begin, long end);
  using product_function = void(const void* rule, T* w, T* const* slots, const gradient_product<T>& p, sample_mean<T> mean,
                                T weight_decay, long begin);
  const void* rule_;
  apply_function* apply_ = nullptr;
  product_function* apply_to_product_ = nullptr;

 public:
  const int slot_count;

  template <class Rule>
  loops_of_rule(const Rule& rule) : rule_(&rule), slot_count(Rule::slots) {
    constexpr bool is_rule = elementwise_rule<Rule, T>;
    static_assert(
        is_rule,
        "the rule of an optimizer is called with (V& weight, reduced_gradient<V>, V& of each slot), and is const; or it is "
        "a parameterwise_rule with propose, scale and apply, or a factored_rule with square and follow besides");
    if constexpr (is_rule) {
      using slot_indices = std::make_integer_sequence<int, Rule::slots>;
      apply_ = [](const void* r, T* w, T* const* at, const T* sums, sample_mean<T> mean, T decay, long begin, long end) {
        apply_rule(*static_cast<const Rule*>(r), w, at, sums, mean, decay, begin, end, slot_indices{});
      };
      apply_to_product_ = [](const void* r, T* w, T* const* at, const gradient_product<T>& p, sample_mean<T> mean, T decay,
                             long begin) {
        if (p.count == 1)
          apply_rule_to_product<1>(*static_cast<const Rule*>(r), w, at, p, mean, decay, begin, slot_indices{});
        else
          apply_rule_to_product<8>(*static_cast<const Rule*>(r), w, at, p, mean, decay, begin, slot_indices{});
      };
    }
  }

  /// sums[0] belongs to element `begin`.
  void apply(T* w, T* const* at, const T* sums, sample_mean<T> mean, T weight_decay, long begin, long end) const {
    apply_(rule_, w, at, sums, mean, weight_decay, begin, end);
  }
  /// Updates the matrix that begins at element `begin`, from at most 8 samples.
  void apply_to_product(T* w, T* const* at, const gradient_product<T>& p, sample_mean<T> mean, T weight_decay, long begin) const {
    apply_to_product_(rule_, w, at, p, mean, weight_decay, begin);
  }
};

}  // namespace detail

namespace core {
/// Replaces the first array of the gradient by the mean, with the derivative of the penalty. Norms are taken of this.
template <class T>
void reduce_slice(const global_gradient<T, host_device>& gradient, const T* w, penalty regularizer, long begin, long end) {
  using V = simd::vec<T>;
  T* const to = gradient.arrays()[0];
  detail::for_blocks(gradient.arrays(), gradient.count(), begin, end, [&](const T* sums, long from, long stop) {
    for (long i = from; i < stop; i += simd::lanes<T>) {
      reduced_gradient<V> mean = gradient.mean().of(simd::load(sums + (i - from)));
      if (!regularizer.empty()) mean = detail::add_penalty(mean, simd::load(w + i), T(regularizer.l1), T(regularizer.l2));
      simd::store(to + i, mean.value());
    }
  });
}

/// Updates elements [begin, end) of weights `w` and of the rule's slots. All pointers are to whole arenas.
template <class T>
[[gnu::noinline]] void update_slice(const std::type_identity_t<detail::loops_of_rule<T>>& rule, T* w,
                                    std::type_identity_t<T* const*> slots, const global_gradient<T, host_device>& gradient,
                                    std::type_identity_t<gradient_modifiers<T>> modifiers, long begin, long end) {
  detail::for_modified_blocks(gradient, w, modifiers, begin, end, [&](const T* sums, sample_mean<T> mean, long from, long to) {
    rule.apply(w, slots, sums, mean, modifiers.weight_decay, from, to);
  });
}

/// The first pass of a parameterwise_rule over elements [begin, end). The first array of the gradient becomes the direction.
template <class T, class Rule>
void propose_slice(const Rule& rule, T* w, std::type_identity_t<T* const*> slots, const global_gradient<T, host_device>& gradient,
                   std::type_identity_t<gradient_modifiers<T>> modifiers, long begin, long end) {
  const detail::slots_of_rule<Rule> slot_indices;
  T* const directions = gradient.arrays()[0];
  detail::for_modified_blocks(gradient, w, modifiers, begin, end, [&](const T* sums, sample_mean<T> mean, long from, long to) {
    detail::propose_directions(rule, w, slots, sums, directions, mean, modifiers.weight_decay, from, to, slot_indices);
  });
}

/// update_slice of one matrix of weights, from the factors of its gradient: at most 8 samples, and rows of whole vectors.
template <class T>
void update_from_product(const std::type_identity_t<detail::loops_of_rule<T>>& rule, T* w, std::type_identity_t<T* const*> slots,
                         const gradient_product<T>& p, sample_mean<T> mean, std::type_identity_t<gradient_modifiers<T>> modifiers,
                         long begin) {
  const T decay = modifiers.weight_decay;
  if (!modifiers.keep_gradient()) {
    alignas(64) T sums[detail::update_block];
    for (int row = 0; row < p.rows; ++row)
      for (int from = 0; from < p.columns; from += int(detail::update_block)) {
        const int to = std::min(from + int(detail::update_block), p.columns);
        const long at = begin + std::ptrdiff_t(row) * p.columns;
        detail::multiply_out(sums, p, row, from, to);
        detail::modify_gradient(sums, w, sums, mean, modifiers, at + from, at + to);
        rule.apply(w, slots, sums, detail::after_reduction::applied(mean), decay, at + from, at + to);
      }
  } else {
    rule.apply_to_product(w, slots, p, mean, decay, begin);
  }
}
}  // namespace core

}  // namespace strata
