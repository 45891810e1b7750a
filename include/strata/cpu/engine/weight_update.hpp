// The update after a step, slice by slice of the arenas: leaf gradients are added in a fixed tree, reduced and clipped, and the
// optimizer's rule is applied. The bits depend neither on slices nor on the width of vectors.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <strata/concepts/device.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/cpu/engine/factored_moments.hpp>
#include <strata/cpu/engine/rule_loops.hpp>
#include <strata/cpu/engine/sums_of_squares.hpp>
#include <strata/kernel/gradient_sink.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>
#include <utility>

namespace strata::core {

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

  /// `run` for arrays in several parts. in_parts(f) calls f(update, gradient, begin, end) for each slice of each part: the
  /// addresses differ between parts, the elements are numbered as in the arena. If other processes have parts of their own,
  /// share_norms(numbers, arrays) completes `arrays` arrays of norms, each with one element for each piece of the arena.
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

  /// If clips_by_norm(): replaces the first array of the gradient by the mean, and computes its norms.
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
      detail::directions_from_moments<T, Rule> in_vectors(rule, p, slots[0] + p.begin);
      for_pieces(k, from, to, [&](long id, long at, long stop) {
        in_vectors(at - p.begin, std::min(stop - p.begin, p.elements), [&](long i, long n, auto propose) {
          const simd::vec<T> weight = detail::load_some(w + i, n);
          detail::store_some<T>(w + i, weight - detail::product(weight, decay), n);
          detail::store_some<T>(own + i, propose(applied.of(simd::vec<T>(detail::load_some(own + i, n)))), n);
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
  /// diverged. This zeroes the padding of the weights and of the rule's slots again. All padding of a parameter has the same
  /// value, so checking one element is enough.
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

  /// The penalty that a regularizer adds to the loss for the weights [begin, end).
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

  /// The begin of a parameter's padding in a slice that begins at `from`.
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
  /// The sum of the squares of parameter k, added up in order.
  double sum_of_pieces(const double* squares, long k) const {
    const parameter_range& p = parameters[std::size_t(k)];
    double sum = 0;
    for (long id = piece_of(k, p.begin, origin); id <= piece_of(k, p.end - 1, origin); ++id) sum += squares[id];
    return sum;
  }

  /// The gradient for the pass after `reduce`, if there was one.
  gradient prepared(const gradient& g) const { return clips_by_norm() ? g.in_first_array() : g; }

  /// The modifiers that are the same for all parameters.
  gradient_modifiers<T> modifiers() const {
    gradient_modifiers<T> m{.clip_value = T(rules.clipvalue), .weight_decay = T(rules.weight_decay * rate)};
    if (rules.global_clipnorm > 0) {
      double sum = 0;
      for (long k = 0; k < long(parameters.size()); ++k)
        if (!parameters[std::size_t(k)].frozen) sum += sum_of_pieces(gradient_norms(), k);
      m.clip_factor = T(clipnorm_factor(sum, rules.global_clipnorm));
    }
    return m;
  }
  /// Adds the modifiers that differ for parameter k.
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

}  // namespace strata::core
