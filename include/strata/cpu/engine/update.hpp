// The update after a step, slice by slice of the arenas: leaf gradients are added in a fixed tree, reduced and clipped, and the
// optimizer's rule is applied. Elements are independent, so the bits depend neither on slices nor on the width of vectors.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <strata/concepts/device.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/cpu/engine/factored_moments.hpp>
#include <strata/cpu/simd/doubles.hpp>
#include <strata/cpu/simd/vector_math.hpp>
#include <strata/kernel/gradient_sink.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// Leaves that are added up in one pass.
inline constexpr int leaves_in_a_pass = 16;

namespace detail {

template <>
struct elementwise<simd::vec<float>> {
  static simd::vec<float> all_zeros() { return simd::broadcast(0.0F); }
  static simd::vec<float> square_root(simd::vec<float> x) { return simd::sqrt<float>(x); }
  static simd::vec<float> rounded(simd::vec<float> x) {
    simd::keep(x);
    return x;
  }
  template <class T>
  static simd::vec<float> power(simd::vec<float> x, T exponent) {
    return simd::exp<T>(exponent * simd::log<T>(x));
  }
};
template <>
struct elementwise<simd::vec<double>> {
  static simd::vec<double> all_zeros() { return simd::broadcast(0.0); }
  static simd::vec<double> square_root(simd::vec<double> x) { return simd::sqrt<double>(x); }
  static simd::vec<double> rounded(simd::vec<double> x) {
    simd::keep(x);
    return x;
  }
  template <class T>
  static simd::vec<double> power(simd::vec<double> x, T exponent) {
    return simd::exp<T>(exponent * simd::log<T>(x));
  }
};

/// ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) ... of element i.
template <int Leaves, class T>
STRATA_INLINE inline simd::vec<T> tree_sum(const T* const* leaves, long i) {
  if constexpr (Leaves == 1)
    return simd::load(leaves[0] + i);
  else
    return tree_sum<Leaves / 2>(leaves, i) + tree_sum<Leaves / 2>(leaves + Leaves / 2, i);
}

/// The same for any number of leaves up to leaves_in_a_pass. A sum without a partner joins in a later round.
template <class T>
simd::vec<T> tree_sum_of_any(const T* const* leaves, int count, long i) {
  simd::vec<T> sum[leaves_in_a_pass] = {};
  for (int l = 0; l < count; ++l) sum[l] = simd::load(leaves[l] + i);
  for (int distance = 1; distance < count; distance *= 2)
    for (int l = 0; l + distance < count; l += 2 * distance) sum[l] += sum[l + distance];
  return sum[0];
}

/// Elements that stay in the first-level cache between adding up leaves and the rule.
inline constexpr long update_block = 512;

/// Other cores have just read the weights, so a store must wait until their copies of the cache line are invalidated. The update
/// requests lines this many elements ahead.
inline constexpr long weights_ahead = 256;

template <class T>
void add_many_leaves(T* to, const T* const* leaves, int count, long begin, long end);

/// to[0 ...] = elements [begin, end) of the sum over leaves.
template <class T>
void add_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  const auto store_all = [&](auto sum) STRATA_INLINE {
    for (long i = begin; i < end; i += simd::lanes<T>) simd::store(to + (i - begin), sum(i));
  };
  switch (count) {
    case 1:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<1>(leaves, i); });
    case 2:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<2>(leaves, i); });
    case 4:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<4>(leaves, i); });
    case 8:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<8>(leaves, i); });
    case 16:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<16>(leaves, i); });
    default:
      if (count <= leaves_in_a_pass) return store_all([=](long i) { return tree_sum_of_any(leaves, count, i); });
  }
  for (long at = begin; at < end; at += update_block)
    add_many_leaves(to + (at - begin), leaves, count, at, std::min(at + update_block, end));
}

/// The same for one block: the two subtrees below the root, one after the other. `to` may be one of the leaves, so the first
/// subtree is added last.
template <class T>
void add_many_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  if (count <= leaves_in_a_pass) return add_leaves(to, leaves, count, begin, end);
  const int first = int(std::bit_floor(unsigned(count - 1)));
  alignas(64) T rest[update_block];
  add_many_leaves(rest, leaves + first, count - first, begin, end);
  add_many_leaves(to, leaves, first, begin, end);
  for (long i = 0; i < end - begin; i += simd::lanes<T>) simd::store(to + i, simd::load(to + i) + simd::load(rest + i));
}

/// Calls f(sums, begin, end) for blocks of the slice. sums[0] belongs to element `begin`.
template <class T, class F>
void for_blocks(const T* const* leaves, int count, long begin, long end, F&& f) {
  alignas(64) T sums[update_block];
  for (long at = begin; at < end; at += update_block) {
    const long stop = std::min(at + update_block, end);
    if (count == 1) {
      f(leaves[0] + at, at, stop);
    } else {
      add_leaves(sums, leaves, count, at, stop);
      f(sums, at, stop);
    }
  }
}

/// to[i - begin] = the mean gradient of element i as the rule sees it. The rule's own loop is compiled for each rule, this one
/// once.
template <class T>
[[gnu::noinline]] void modify_gradient(T* to, const T* w, const T* sums, sample_mean<T> mean, const gradient_modifiers<T>& m,
                                       long begin, long end) {
  using V = simd::vec<T>;
  for (long i = begin; i < end; i += simd::lanes<T>)
    simd::store(to + (i - begin), modified(mean.of(V(simd::load(sums + (i - begin)))), simd::load(w + i), m).value());
}

/// Calls f(gradients, mean, begin, end) for blocks of the slice, with the gradients as the rule sees them once the mean is taken.
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

/// to[i] = the mean gradient of element i as the rule sees it.
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

}  // namespace detail

/// to[i] = the sum over leaves of element i, in one process, before it is reduced with others. `to` may be one of the leaves.
template <class T>
void sum_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  detail::add_leaves(to + begin, leaves, count, begin, end);
}

namespace detail {
/// The sum of f(element) in double over [begin, end), always in the same order: 16 partial sums, then the sum of these. f takes a
/// vector of doubles, and f(0) must be 0.
template <class T, class F>
double sum_over(const T* values, long begin, long end, F f) {
  constexpr int width = simd::lanes<double>, vectors = int(slice_alignment) / width;
  simd::vec<double> sums[vectors] = {};
  long i = begin;
  for (; i + slice_alignment <= end; i += slice_alignment) {
    STRATA_UNROLL
    for (int k = 0; k < vectors; ++k) sums[k] += f(simd::load_as_doubles(values + i + k * width, width));
  }
  STRATA_UNROLL
  for (int k = 0; k < vectors; ++k) {
    if (const long at = i + k * width; at < end)
      sums[k] += f(simd::load_as_doubles(values + at, int(std::min<long>(width, end - at))));
  }
  double sum[slice_alignment];
  std::memcpy(sum, sums, sizeof sum);
  for (long distance = 1; distance < slice_alignment; distance *= 2)
    for (long l = 0; l < slice_alignment; l += 2 * distance) sum[l] += sum[l + distance];
  return sum[0];
}
template <class T>
double sum_of_squares(const T* values, long begin, long end) {
  return sum_over(values, begin, end, [](simd::vec<double> x) { return product(x, x); });
}
}  // namespace detail

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

namespace detail {
/// An elementwise_rule with its type erased: what is compiled for each rule are the loops over its elements, not what is around
/// them. Some optimizers have two rules, of which they choose one at run time. Refers to the rule, which must outlive it.
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
  /// To the matrix that begins at element `begin`, with at most 8 samples.
  void apply_to_product(T* w, T* const* at, const gradient_product<T>& p, sample_mean<T> mean, T weight_decay, long begin) const {
    apply_to_product_(rule_, w, at, p, mean, weight_decay, begin);
  }
};
}  // namespace detail

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

/// Everything between the gradient of the global batch and the new weights. `run` makes all passes over the arrays that the
/// settings and the rule need; the members that it calls are the passes, each for one slice of slice_of.
template <class T, optimizer Optimizer>
struct weight_update {
  using gradient = global_gradient<T, host_device>;

  const Optimizer& rules;
  double rate;  // learning rate of this step
  std::span<const parameter_range> parameters;
  T* weights;
  T* const* slots;
  double* norms = nullptr;          // where takes_norms(rules): norm_count(parameters, origin) elements
  long origin = 0;                  // where the arrays begin in the arena: norms are added up in the pieces of the arena
  bool has_gradient_norms = false;  // take_gradient_norms has been called

  static constexpr long norm_count(std::span<const parameter_range> parameters, long origin = 0) {
    return 3 * piece_count(parameters, origin);
  }

  bool clips_by_norm() const { return rules.clipnorm > 0 || rules.global_clipnorm > 0; }

  /// in_slices(f) calls f(begin, end) for each slice of the arrays, on any threads, and returns when all calls have returned.
  template <class Rule, class InSlices>
  void run(const Rule& rule, const gradient& g, InSlices&& in_slices) const {
    const auto in_parts = [&](auto&& f) { in_slices([&](long begin, long end) { f(*this, g, begin, end); }); };
    run_parts(rule, in_parts, [](double*, int) {});
  }

  /// The same for arrays in several parts. in_parts(f) calls f(update, gradient, begin, end) for each slice of each part: the
  /// addresses differ between parts, the elements are numbered as in the arena. Where other processes have parts of their own,
  /// share_norms(numbers, arrays) completes so many arrays of numbers, one for each piece of the arena.
  template <class Rule, class InParts, class ShareNorms>
  void run_parts(const Rule& rule, InParts&& in_parts, ShareNorms&& share_norms) const {
    if (!has_gradient_norms) take_gradient_norms(in_parts, share_norms);
    if constexpr (parameterwise_rule<Rule, T> || factored_rule<Rule, T>) {
      constexpr bool says_so = norm_optimizer<Optimizer>;
      static_assert(says_so, "an optimizer with a parameterwise_rule or a factored_rule has `bool needs_norms() const`");
      if constexpr (factored_rule<Rule, T>) {
        in_parts(
            [&](const weight_update& it, const gradient& g, long begin, long end) { it.update_moments(rule, g, begin, end); });
        in_parts([&](const weight_update& it, const gradient& g, long begin, long end) {
          it.propose_from_moments(rule, g, begin, end);
        });
      } else {
        in_parts([&](const weight_update& it, const gradient& g, long begin, long end) { it.propose(rule, g, begin, end); });
      }
      share_norms(weight_norms(), 2);
      in_parts([&](const weight_update& it, const gradient& g, long begin, long end) {
        it.apply_directions(rule, g, begin, end);
        it.template clear_padding<Rule>(begin, end);
      });
    } else {
      run_elementwise(detail::loops_of_rule<T>(rule), in_parts);
    }
  }

  /// The first pass, if gradients are clipped by norms. It changes neither weights nor slots.
  template <class InParts, class ShareNorms>
  void take_gradient_norms(InParts&& in_parts, ShareNorms&& share_norms) const {
    if (!clips_by_norm()) return;
    in_parts([](const weight_update& it, const gradient& g, long begin, long end) { it.reduce(g, begin, end); });
    share_norms(gradient_norms(), 1);
  }

  /// Where clips_by_norm(): the first array of the gradient becomes the mean, and its norms are taken.
  void reduce(const gradient& g, long begin, long end) const {
    for_parameters(begin, end, [&](const parameter_range& p, long k, long from, long to) {
      for_pieces(k, from, to, [&](long id, long at, long stop) {
        reduce_slice(g, weights, p.regularizer, at, stop);
        gradient_norms()[id] = squares(g.arrays()[0], p, at, stop);
      });
    });
  }

  /// The only pass of an elementwise_rule, unless clips_by_norm(). clear_padding comes after it.
  [[gnu::noinline]] void apply(const detail::loops_of_rule<T>& rule, const gradient& g, long begin, long end) const {
    const gradient_modifiers<T> m = modifiers();
    bool same_for_all = !(rules.clipnorm > 0);
    for (const parameter_range& p : parameters) same_for_all = same_for_all && p.regularizer.empty() && !p.frozen;
    if (same_for_all) return update_slice(rule, weights, slots, prepared(g), m, begin, end);

    for_parameters(begin, end, [&](const parameter_range& p, long k, long from, long to) {
      update_slice(rule, weights, slots, prepared(g), modifiers(m, p, k), from, to);
    });
  }

  /// The first pass of a parameterwise_rule: the first array of the gradient becomes the direction, and norms are taken.
  template <class Rule>
  void propose(const Rule& rule, const gradient& g, long begin, long end) const {
    const gradient_modifiers<T> common = modifiers();
    for_parameters(begin, end, [&](const parameter_range& p, long k, long from, long to) {
      const gradient_modifiers<T> m = modifiers(common, p, k);
      for_pieces(k, from, to, [&](long id, long at, long stop) {
        propose_slice(rule, weights, slots, prepared(g), m, at, stop);
        weight_norms()[id] = squares(weights, p, at, stop);
        direction_norms()[id] = squares(g.arrays()[0], p, at, stop);
      });
      std::fill(g.arrays()[0] + std::min(to, padding_of(p, from)), g.arrays()[0] + to, T{});  // see clear_padding
    });
  }

  /// The first pass of a factored_rule: the first array of the gradient becomes the mean gradient as the rule sees it. A
  /// parameter belongs to the slice in which it begins.
  template <class Rule>
  void update_moments(const Rule& rule, const gradient& g, long begin, long end) const {
    const gradient_modifiers<T> common = modifiers();
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const parameter_range& p = parameters[k];
      if (p.frozen || p.begin < begin || p.begin >= end) continue;
      detail::store_modified_gradient(g.arrays()[0], prepared(g), weights, modifiers(common, p, long(k)), p.begin, p.end);
      detail::update_moments(rule, slots[0] + p.begin, g.arrays()[0] + p.begin, detail::after_reduction::applied(g.mean()), p);
    }
  }
  /// The second one: the array becomes the direction, and norms are taken.
  template <class Rule>
  void propose_from_moments(const Rule& rule, const gradient& g, long begin, long end) const {
    const T decay = T(rules.weight_decay * rate);
    const sample_mean<T> applied = detail::after_reduction::applied(g.mean());
    for_parameters(begin, end, [&](const parameter_range& p, long k, long from, long to) {
      T *const directions = g.arrays()[0], *const w = weights + p.begin, *const own = directions + p.begin;
      detail::moments_of_elements<T> moments(p, slots[0] + p.begin);
      for_pieces(k, from, to, [&](long id, long at, long stop) {
        moments(at - p.begin, std::min(stop - p.begin, p.elements), [&](long i, long n, simd::vec<T> moment) {
          const simd::vec<T> weight = detail::load_some(w + i, n);
          detail::store_some<T>(w + i, weight - detail::product(weight, decay), n);
          detail::store_some<T>(own + i, rule.propose(applied.of(detail::load_some(own + i, n)), moment), n);
        });
        weight_norms()[id] = squares(weights, p, at, stop);
        direction_norms()[id] = squares(directions, p, at, stop);
      });
      std::fill(directions + std::min(to, padding_of(p, from)), directions + to, T{});  // see clear_padding
    });
  }

  /// Only for its compile error.
  template <class Device>
  void apply(const detail::loops_of_rule<T>&, const leaf_gradients<T, Device>&, long, long) const {
    static_assert(sizeof(reduction_is_missing_between<leaf_gradients<T, Device>, gradient>) > 0,
                  "an update takes a global_gradient: a gradient_reduction makes it of leaf_gradients");
  }

  /// The last pass of a parameterwise_rule or a factored_rule.
  template <class Rule>
  void apply_directions(const Rule& rule, const gradient& g, long begin, long end) const {
    constexpr bool with_slots = detail::applies_with_slots<Rule, T, detail::slots_of_rule<Rule>>;
    const std::make_integer_sequence<int, with_slots ? Rule::slots : 0> slot_indices;
    for_parameters(begin, end, [&](const parameter_range& p, long k, long from, long to) {
      const auto scale =
          rule.scale({std::sqrt(sum_of_pieces(weight_norms(), k)), std::sqrt(sum_of_pieces(direction_norms(), k)), p.elements});
      detail::apply_directions(rule, weights, slots, g.arrays()[0], scale, from, to, slot_indices);
    });
  }

  /// `apply` to the matrix that begins at an element, from the factors of its gradient; not where clips_by_norm(), nor with
  /// frozen parameters.
  void apply_product(const detail::loops_of_rule<T>& rule, const gradient_product<T>& p, sample_mean<T> mean, long begin) const {
    gradient_modifiers<T> m = modifiers();
    for (const parameter_range& at : parameters)
      if (at.begin == begin) m.l1 = T(at.regularizer.l1), m.l2 = T(at.regularizer.l2);
    update_from_product(rule, weights, slots, p, mean, m, begin);
  }

  /// A factor that is not finite turns padding into NaN, because 0 * NaN is NaN: for example the clip factor after training has
  /// diverged. This makes padding of the weights and of the rule's slots zero again. All padding of a parameter has the same
  /// value, so it looks at one element.
  template <class Rule>
  void clear_padding(long begin, long end) const {
    clear_padding(Rule::slots, !elementwise_rule<Rule, T>, begin, end);
  }
  [[gnu::noinline]] void clear_padding(int rule_slots, bool parameterwise, long begin, long end) const {
    constexpr double overflows = 1e30;  // in products with settings of the optimizer, as float
    if (!parameterwise && !clips_by_norm() && std::abs(rate) * std::max(1., rules.weight_decay) < overflows)
      return;  // all factors are finite
    for_parameters(begin, end, [&](const parameter_range& p, long, long from, long to) {
      const long padding = padding_of(p, from);
      if (padding >= to) return;
      bool is_zero = weights[padding] == 0;
      for (int k = 0; k < rule_slots; ++k) is_zero = bool(is_zero & (slots[k][padding] == 0));
      if (is_zero) [[likely]]
        return;
      std::fill(weights + padding, weights + to, T{});
      for (int k = 0; k < rule_slots; ++k) std::fill(slots[k] + padding, slots[k] + to, T{});
    });
  }

  /// What a regularizer adds to the loss, for some weights.
  static double penalty_of(penalty p, const T* w, long begin, long end) {
    return p.empty() ? 0 : detail::sum_over(w, begin, end, [p](simd::vec<double> v) {
      return detail::product(v < 0. ? -v : v, p.l1) + detail::product(detail::product(v, v), p.l2);
    });
  }

 private:
  template <class InParts>
  [[gnu::noinline]] void run_elementwise(const detail::loops_of_rule<T>& rule, InParts& in_parts) const {
    in_parts([&](const weight_update& it, const gradient& g, long begin, long end) {
      it.apply(rule, g, begin, end);
      it.clear_padding(rule.slot_count, false, begin, end);
    });
  }

  /// Where the padding of a parameter begins in a slice that begins at `from`.
  static long padding_of(const parameter_range& p, long from) { return std::max(from, p.begin + p.elements); }

  static constexpr long piece_count(std::span<const parameter_range> parameters, long origin) {
    return parameters.empty() ? 0 : piece_of(long(parameters.size()) - 1, parameters.back().end - 1, origin) + 1;
  }
  // Sums of squares, a number for each piece.
  double* gradient_norms() const { return norms; }
  double* weight_norms() const { return norms + piece_count(parameters, origin); }
  double* direction_norms() const { return norms + 2 * piece_count(parameters, origin); }

  static double squares(const T* values, const parameter_range& p, long begin, long end) {
    return detail::sum_of_squares(values, begin, std::min(end, p.begin + p.elements));
  }
  /// Added up in order, for parameter k.
  double sum_of_pieces(const double* squares, long k) const {
    const parameter_range& p = parameters[std::size_t(k)];
    double sum = 0;
    for (long id = piece_of(k, p.begin, origin); id <= piece_of(k, p.end - 1, origin); ++id) sum += squares[id];
    return sum;
  }

  /// The gradient for the pass after `reduce`, if there was one.
  gradient prepared(const gradient& g) const { return clips_by_norm() ? g.in_first_array() : g; }

  /// What is the same for all parameters.
  gradient_modifiers<T> modifiers() const {
    gradient_modifiers<T> m{.clip_value = T(rules.clipvalue), .weight_decay = T(rules.weight_decay * rate)};
    if (rules.global_clipnorm > 0) {
      double sum = 0;
      for (long k = 0; k < long(parameters.size()); ++k)
        if (!parameters[std::size_t(k)].frozen) sum += sum_of_pieces(gradient_norms(), k);
      m.clip_factor = T(global_clipnorm_factor(sum, rules.global_clipnorm));
    }
    return m;
  }
  /// The same with what differs for parameter k.
  gradient_modifiers<T> modifiers(gradient_modifiers<T> m, const parameter_range& p, long k) const {
    if (rules.clipnorm > 0) m.clip_factor = T(clipnorm_factor(sum_of_pieces(gradient_norms(), k), rules.clipnorm));
    if (!clips_by_norm()) m.l1 = T(p.regularizer.l1), m.l2 = T(p.regularizer.l2);
    return m;
  }

  /// f(parameter, its index, begin, end) for the parts of parameters in the slice that are not frozen.
  template <class F>
  void for_parameters(long begin, long end, F f) const {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const long from = std::max(begin, parameters[k].begin), to = std::min(end, parameters[k].end);
      if (from < to && !parameters[k].frozen) f(parameters[k], long(k), from, to);
    }
  }
  /// f(index of the piece, begin, end) for the pieces of a part of parameter k.
  template <class F>
  void for_pieces(long k, long begin, long end, F f) const {
    const long shift = origin % norm_piece;
    for (long at = begin, stop; at < end; at = stop) {
      stop = std::min(end, ((at + shift) / norm_piece + 1) * norm_piece - shift);
      f(piece_of(k, at, origin), at, stop);
    }
  }
};

}  // namespace strata
