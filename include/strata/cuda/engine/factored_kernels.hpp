// Kernels of a rule that keeps moments of rows and columns: a factored_rule, such as that of adafactor.
#pragma once
#include <cmath>
#include <strata/cuda/engine/update_numbers.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>

namespace strata::machine {

/// The second moments of a parameter: of each row, then of each column; or of each element.
template <class T, class Rule>
struct follow_moments {
  parameter_range p;
  const update_numbers<T>* now;
  const T* gradient;  // of the parameter, with all modifiers applied
  T* moments;
  sample_mean<T> applied;

  constexpr long rows() const { return p.elements / p.columns; }
  constexpr long count() const { return p.is_matrices() ? rows() + p.elements / (p.rows * p.columns) * p.columns : p.elements; }
  constexpr T square(long i) const { return now->template rule_as<Rule>().square(applied.of(gradient[i])); }
  constexpr void operator()(long i) const {
    const Rule& rule = now->template rule_as<Rule>();
    double sum = 0;
    if (!p.is_matrices()) {
      rule.follow(moments[i], square(i));
    } else if (i < rows()) {
      for (long j = 0; j < p.columns; ++j) sum += double(square(i * p.columns + j));
      rule.follow(moments[i], T(sum / double(p.columns)));
    } else {
      const long matrix = (i - rows()) / p.columns, column = (i - rows()) % p.columns;
      for (long k = 0; k < p.rows; ++k) sum += double(square((matrix * p.rows + k) * p.columns + column));
      rule.follow(moments[i], T(sum / double(p.rows)));
    }
  }
};
/// The mean of the moments of the rows of each matrix.
template <class T>
struct means_of_rows {
  parameter_range p;
  const T* moments;
  double* to;
  constexpr void operator()(long matrix) const {
    double sum = 0;
    for (long k = 0; k < p.rows; ++k) sum += double(moments[matrix * p.rows + k]);
    to[matrix] = sum / double(p.rows);
  }
};
/// The second pass: replaces gradients by directions.
template <class T, class Rule>
struct propose_from_moments {
  parameter_range p;
  const update_numbers<T>* now;
  T *directions, *weights;  // of the parameter
  const T* moments;
  const double* means;
  sample_mean<T> applied;

  constexpr T direction(const Rule& rule, reduced_gradient<T> gradient, long i) const {
    if (!p.is_matrices()) return rule.propose(gradient, moments[i]);
    const long rows = p.elements / p.columns, matrix = i / (p.rows * p.columns);
    const double of_row = double(moments[i / p.columns]), mean = means[matrix];
    return strata::detail::propose_from_factors(rule, gradient, moments[rows + matrix * p.columns + i % p.columns],
                                                T(of_row / mean), T(std::sqrt(mean) / std::sqrt(of_row)));
  }
  constexpr void operator()(long i) const {
    weights[i] -= strata::detail::product(weights[i], now->weight_decay);
    directions[i] = direction(now->template rule_as<Rule>(), applied.of(directions[i]), i);
  }
};

}  // namespace strata::machine
