// What runs after a step: leaf gradients are added in a fixed tree, reduced, clipped, and an optimizer's rule is applied, in
// one pass over a slice of the arenas. Elements do not see each other, so the bits depend on no slice and no vector width.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <strata/concepts/operation.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/cpu/doubles.hpp>
#include <strata/optimizers/clipping.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// Into how many leaves a batch may be cut at most; powers of two are fastest. So many processes may share a batch.
inline constexpr int max_leaves = 1024;

/// So many are added up in one pass.
inline constexpr int leaves_in_a_pass = 16;

/// Slices of arenas begin and end at multiples of so many elements.
inline constexpr long slice_alignment = 16;

/// Norms are added up over pieces of so many elements of the arena, whoever computes them. A slice ends with a piece.
inline constexpr long norm_piece = 1024;

/// What happens to the mean gradient of some elements before the rule sees it, and to their weights.
template <class T>
struct gradient_modifiers {
  T l1 = 0, l2 = 0;    // adds the derivative of l1 * |w| + l2 * w^2
  T clip_factor = 1;   // of a norm: clipnorm_factor, global_clipnorm_factor
  T clip_value = 0;    // 0: off
  T weight_decay = 0;  // w -= w * weight_decay; the learning rate is in it

  /// The rule sees the gradient as it is.
  constexpr bool keep_gradient() const { return l1 == 0 && l2 == 0 && clip_factor == 1 && clip_value == 0; }
};

namespace detail {

template <>
struct elementwise<simd::vec<float>> {
  static simd::vec<float> square_root(simd::vec<float> x) { return simd::sqrt<float>(x); }
  static simd::vec<float> rounded(simd::vec<float> x) {
    simd::keep(x);
    return x;
  }
};
template <>
struct elementwise<simd::vec<double>> {
  static simd::vec<double> square_root(simd::vec<double> x) { return simd::sqrt<double>(x); }
  static simd::vec<double> rounded(simd::vec<double> x) {
    simd::keep(x);
    return x;
  }
};

/// ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) ... at element i
template <int Leaves, class T>
STRATA_INLINE inline simd::vec<T> tree_sum(const T* const* leaves, long i) {
  if constexpr (Leaves == 1)
    return simd::load(leaves[0] + i);
  else
    return tree_sum<Leaves / 2>(leaves, i) + tree_sum<Leaves / 2>(leaves + Leaves / 2, i);
}

/// The same for any number of leaves up to leaves_in_a_pass: one without a partner waits.
template <class T>
simd::vec<T> tree_sum_of_any(const T* const* leaves, int count, long i) {
  simd::vec<T> sum[leaves_in_a_pass] = {};
  for (int l = 0; l < count; ++l) sum[l] = simd::load(leaves[l] + i);
  for (int distance = 1; distance < count; distance *= 2)
    for (int l = 0; l + distance < count; l += 2 * distance) sum[l] += sum[l + distance];
  return sum[0];
}

/// Few enough that they stay in the first-level cache between adding up leaves and the rule.
inline constexpr long update_block = 512;

/// Other cores have just read the weights, and a store waits until they have given a line up: they are asked so many elements ahead.
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
/// subtree comes last.
template <class T>
void add_many_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  if (count <= leaves_in_a_pass) return add_leaves(to, leaves, count, begin, end);
  const int first = int(std::bit_floor(unsigned(count - 1)));
  alignas(64) T rest[update_block];
  add_many_leaves(rest, leaves + first, count - first, begin, end);
  add_many_leaves(to, leaves, first, begin, end);
  for (long i = 0; i < end - begin; i += simd::lanes<T>) simd::store(to + i, simd::load(to + i) + simd::load(rest + i));
}

/// f(sums, begin, end) for blocks of the slice, where sums[0] belongs to element `begin`.
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

template <class V, class T>
constexpr reduced_gradient<V> add_penalty(reduced_gradient<V> gradient, V w, T l1, T l2) {
  return reduction::transformed(gradient, [=](V g) {
    const V up = spread<V>(l1), down = spread<V>(-l1), zero{};
    const V slope = w > zero ? up : w < zero ? down : zero;
    return g + (product(w, l2 + l2) + slope);
  });
}

/// One vector of weights and state, from the sums of its gradient.
template <bool Modified, class T, class Rule, int... Slot>
STRATA_INLINE inline void apply_rule_at(const Rule& rule, T* w, [[maybe_unused]] T* const* slot, simd::vec<T> sum, T scale,
                                        const gradient_modifiers<T>& m, long i) {
  using V = simd::vec<T>;
  V weight = simd::load(w + i);
  reduced_gradient<V> gradient = reduction::mean(local_gradient<V>{sum}, scale);
  if constexpr (Modified) {
    gradient = add_penalty(gradient, weight, m.l1, m.l2);
    gradient = clip_by_factor(gradient, m.clip_factor);
    gradient = clip_by_value(gradient, m.clip_value);
  }
  weight -= product(weight, m.weight_decay);
  V state[sizeof...(Slot) + 1] = {simd::load(slot[Slot] + i)...};
  rule(weight, gradient, state[Slot]...);
  (simd::store(slot[Slot] + i, state[Slot]), ...);
  simd::store(w + i, weight);
}

template <bool Modified, class T, class Rule, int... Slot>
void apply_rule(Rule rule, T* w, T* const* slots, const T* sums, T scale, gradient_modifiers<T> m, long begin, long end,
                std::integer_sequence<int, Slot...>) {
  T* const slot[sizeof...(Slot) + 1] = {slots[Slot]...};  // copies that no store can change
  for (long i = begin; i < end; i += simd::lanes<T>) {
    __builtin_prefetch(w + i + weights_ahead, 1);
    apply_rule_at<Modified, T, Rule, Slot...>(rule, w, slot, simd::load(sums + (i - begin)), scale, m, i);
  }
}

/// The gradient of a matrix as the two factors that make it.
template <class T>
struct gradient_product {
  const T* x;   // (count, rows)
  const T* dz;  // (count, columns)
  int count, rows, columns;
};

/// The matrix that begins at element `begin`. Samples that are missing up to Count multiply nothing by zero. A sum that is zero
/// has no sign, as in the gradients that dense layers store.
template <bool Modified, int Count, class T, class Rule, int... Slot>
void apply_rule_to_product(Rule rule, T* w, T* const* slots, gradient_product<T> p, T scale, gradient_modifiers<T> m, long begin,
                           std::integer_sequence<int, Slot...>) {
  using V = simd::vec<T>;
  T* const slot[sizeof...(Slot) + 1] = {slots[Slot]...};
  const T* dz[Count];
  for (int n = 0; n < Count; ++n) dz[n] = p.dz + std::min(n, p.count - 1) * std::ptrdiff_t(p.columns);
  for (int k = 0; k < p.rows; ++k, begin += p.columns) {
    V x[Count];
    simd::unroll<Count>([&](auto n) STRATA_INLINE {
      x[n] = n < p.count ? simd::broadcast(p.x[n * std::ptrdiff_t(p.rows) + k]) : V{};
    });
    for (int j = 0; j < p.columns; j += simd::lanes<T>) {
      V sum{};
      simd::unroll<Count>([&](auto n) STRATA_INLINE { sum = x[n] * simd::load(dz[n] + j) + sum; });
      apply_rule_at<Modified, T, Rule, Slot...>(rule, w, slot, sum + V{}, scale, m, begin + j);
    }
  }
}

}  // namespace detail

/// to[i] = the sum over leaves of element i: of one process, before it is reduced with others. `to` may be one of the leaves.
template <class T>
void sum_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  detail::add_leaves(to + begin, leaves, count, begin, end);
}

/// The sum of f(element) in double over a slice of an arena, always added up in the same order: 16 sums side by side, then
/// those. f takes a vector of doubles.
template <class T, class F>
double sum_over(const T* values, long begin, long end, F f) {
  constexpr int width = simd::lanes<double>, vectors = int(slice_alignment) / width;
  simd::vec<double> sums[vectors] = {};
  for (long i = begin; i < end; i += slice_alignment)
    simd::unroll<vectors>([&](auto k) STRATA_INLINE { sums[k] += f(simd::load_as_doubles(values + i + k * width, width)); });
  double sum[slice_alignment];
  std::memcpy(sum, sums, sizeof sum);
  for (long distance = 1; distance < slice_alignment; distance *= 2)
    for (long l = 0; l < slice_alignment; l += 2 * distance) sum[l] += sum[l + distance];
  return sum[0];
}

/// to[i] = the mean gradient of element i, with the derivative of the penalty: what norms are taken of. `to` may be a leaf;
/// update_slice then takes it as the only one, with scale 1.
template <class T>
void reduce_slice(T* to, const T* w, const T* const* leaves, int count, T scale, penalty regularizer, long begin, long end) {
  using V = simd::vec<T>;
  detail::for_blocks(leaves, count, begin, end, [&](const T* sums, long from, long stop) {
    for (long i = from; i < stop; i += simd::lanes<T>) {
      reduced_gradient<V> gradient = reduction::mean(local_gradient<V>{simd::load(sums + (i - from))}, scale);
      if (!regularizer.empty()) gradient = detail::add_penalty(gradient, simd::load(w + i), T(regularizer.l1), T(regularizer.l2));
      simd::store(to + i, gradient.value());
    }
  });
}

/// Updates elements [begin, end) of weights `w` and of the rule's slots, from leaf gradients whose sum times `scale` is the
/// mean over the global batch. All pointers are to whole arenas.
template <class T, class Rule>
void update_slice(const Rule& rule, T* w, std::type_identity_t<T* const*> slots, const T* const* leaves, int count,
                  std::type_identity_t<T> scale, std::type_identity_t<gradient_modifiers<T>> modifiers, long begin, long end) {
  constexpr bool is_rule = optimizer_rule<Rule, T>;
  static_assert(is_rule,
                "the rule of an optimizer is called with (V& weight, reduced_gradient<V>, V& of each slot), and is const");
  if constexpr (is_rule) {
    using numbers = std::make_integer_sequence<int, Rule::slots>;
    const bool as_it_is = modifiers.keep_gradient();
    if (modifiers.clip_value == 0) modifiers.clip_value = std::numeric_limits<T>::infinity();
    detail::for_blocks(leaves, count, begin, end, [&](const T* sums, long from, long to) {
      if (as_it_is)
        detail::apply_rule<false>(rule, w, slots, sums, scale, modifiers, from, to, numbers{});
      else
        detail::apply_rule<true>(rule, w, slots, sums, scale, modifiers, from, to, numbers{});
    });
  }
}

/// The same for one matrix of weights, from the factors of its gradient: at most 8 samples, and rows of whole vectors.
template <class T, class Rule>
void update_from_product(const Rule& rule, T* w, std::type_identity_t<T* const*> slots, const detail::gradient_product<T>& p,
                         std::type_identity_t<T> scale, std::type_identity_t<gradient_modifiers<T>> modifiers, long begin) {
  const std::make_integer_sequence<int, Rule::slots> numbers;
  const bool as_it_is = modifiers.keep_gradient();
  if (modifiers.clip_value == 0) modifiers.clip_value = std::numeric_limits<T>::infinity();
  if (as_it_is && p.count == 1)
    detail::apply_rule_to_product<false, 1>(rule, w, slots, p, scale, modifiers, begin, numbers);
  else if (as_it_is)
    detail::apply_rule_to_product<false, 8>(rule, w, slots, p, scale, modifiers, begin, numbers);
  else
    detail::apply_rule_to_product<true, 8>(rule, w, slots, p, scale, modifiers, begin, numbers);
}

/// Where a parameter lies in the arenas, padding included.
struct parameter_range {
  long begin, end;
  penalty regularizer{};
};

template <int Capacity>
struct parameter_ranges {
  parameter_range ranges[Capacity + 1] = {};
  int count = 0;
  constexpr std::span<const parameter_range> span() const { return {ranges, std::size_t(count)}; }
};

/// What is trained, in the order of the arena, of a parameter_layout.
template <template <int> class Layout, int Count>
constexpr parameter_ranges<Count> trained_ranges(const Layout<Count>& layout) {
  parameter_ranges<Count> trained;
  for (int i = 0; i < Count; ++i)
    if (layout.slots[i].what.trainable)
      trained.ranges[trained.count++] = {layout.slots[i].offset, 0, layout.slots[i].what.regularizer};
  for (int i = 0; i < trained.count; ++i)
    trained.ranges[i].end = i + 1 < trained.count ? trained.ranges[i + 1].begin : layout.trainable;
  return trained;
}

/// Where the share of one of `ranks` threads begins; it ends where the next one begins.
constexpr long slice_begin(long size, int rank, int ranks) {
  const long pieces = (size + norm_piece - 1) / norm_piece;
  return std::min(size, pieces * rank / ranks * norm_piece);
}

/// Everything between the leaves' gradients and the new weights. Each thread calls `apply` for its slice; where
/// `clips_by_norm()`, all have to call `reduce` first, then meet at a barrier. Slices are those of slice_begin.
template <class T, optimizer Optimizer>
struct weight_update {
  const Optimizer& rules;
  double rate;  // learning rate of this step
  T scale;      // 1 / samples of the global batch
  std::span<const parameter_range> parameters;
  T* weights;
  T* const* slots;
  T* const* leaves;  // sums over samples; reduce overwrites the first
  int leaf_count;
  double* norms = nullptr;  // where clips_by_norm(): piece_count(parameters) numbers

  /// A piece belongs to one parameter, so two may lie in the same norm_piece elements.
  static constexpr long piece(long parameter, long element) { return element / norm_piece + parameter; }
  static constexpr long piece_count(std::span<const parameter_range> parameters) {
    return parameters.empty() ? 0 : piece(long(parameters.size()) - 1, parameters.back().end - 1) + 1;
  }

  bool clips_by_norm() const { return rules.clipnorm > 0 || rules.global_clipnorm > 0; }

  void reduce(long begin, long end) const {
    for_pieces(begin, end, [&](const parameter_range& p, long id, long from, long to) {
      reduce_slice(leaves[0], weights, leaves, leaf_count, scale, p.regularizer, from, to);
      norms[id] = sum_over(leaves[0], from, to, [](simd::vec<double> g) { return detail::product(g, g); });
    });
  }

  template <class Rule>
  void apply(const Rule& rule, long begin, long end) const {
    gradient_modifiers<T> m{.clip_value = T(rules.clipvalue), .weight_decay = T(rules.weight_decay * rate)};
    if (rules.global_clipnorm > 0) m.clip_factor = T(global_clipnorm_factor(sum_of_all_pieces(), rules.global_clipnorm));
    bool same_for_all = !(rules.clipnorm > 0);
    for (const parameter_range& p : parameters) same_for_all = same_for_all && p.regularizer.empty();
    if (same_for_all) return update(rule, m, begin, end);

    for_parameters(begin, end, [&](const parameter_range& p, long k, long from, long to) {
      if (rules.clipnorm > 0) m.clip_factor = T(clipnorm_factor(sum_of_pieces(k), rules.clipnorm));
      if (!clips_by_norm()) m.l1 = T(p.regularizer.l1), m.l2 = T(p.regularizer.l2);
      update(rule, m, from, to);
    });
  }

  /// The same for the matrix that begins at an element, from the factors of its gradient; not where clips_by_norm().
  template <class Rule>
  void apply_product(const Rule& rule, const detail::gradient_product<T>& p, long begin) const {
    gradient_modifiers<T> m{.clip_value = T(rules.clipvalue), .weight_decay = T(rules.weight_decay * rate)};
    for (const parameter_range& at : parameters)
      if (at.begin == begin) m.l1 = T(at.regularizer.l1), m.l2 = T(at.regularizer.l2);
    update_from_product(rule, weights, slots, p, scale, m, begin);
  }

  /// What a regularizer adds to the loss for some weights.
  static double penalty_of(penalty p, const T* w, long begin, long end) {
    return p.empty() ? 0 : sum_over(w, begin, end, [p](simd::vec<double> v) {
      return detail::product(v < 0. ? -v : v, p.l1) + detail::product(detail::product(v, v), p.l2);
    });
  }

 private:
  template <class Rule>
  void update(const Rule& rule, const gradient_modifiers<T>& m, long begin, long end) const {
    update_slice(rule, weights, slots, leaves, clips_by_norm() ? 1 : leaf_count, clips_by_norm() ? T(1) : scale, m, begin, end);
  }
  /// Squares of all elements, or of parameter k, added up in order.
  double sum_of_all_pieces() const {
    double sum = 0;
    for (long k = 0; k < long(parameters.size()); ++k) sum += sum_of_pieces(k);
    return sum;
  }
  double sum_of_pieces(long k) const {
    const parameter_range& p = parameters[std::size_t(k)];
    double sum = 0;
    for (long id = piece(k, p.begin); id <= piece(k, p.end - 1); ++id) sum += norms[id];
    return sum;
  }
  /// f(parameter, its number, begin, end) for what lies in the slice.
  template <class F>
  void for_parameters(long begin, long end, F f) const {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const long from = std::max(begin, parameters[k].begin), to = std::min(end, parameters[k].end);
      if (from < to) f(parameters[k], long(k), from, to);
    }
  }
  template <class F>
  void for_pieces(long begin, long end, F f) const {
    for_parameters(begin, end, [&](const parameter_range& p, long k, long from, long to) {
      for (long at = from, stop; at < to; at = stop) {
        stop = std::min(to, (at / norm_piece + 1) * norm_piece);
        f(p, piece(k, at), at, stop);
      }
    });
  }
};

}  // namespace strata
