// Runs a kernel of the cpu backend and the chain of reference kernels that it replaces on the same data.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <strata/base/precision.hpp>
#include <strata/reference/reference.hpp>
#include <vector>

#include "aligned_vector.hpp"
#include "larger.hpp"

/// Aligned memory of exactly n elements.
template <class T>
struct buffer {
  explicit buffer(int n, T value = T{}) : size(n), values(std::size_t(n > 0 ? n : 1), value), data(values.data()) {}
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;

  int size;
  strata::test::aligned_vector<T> values;
  T* data;
};

namespace cpu_compare {
using namespace strata;
using namespace strata::core;

/// A number in (-1, 1) that float represents exactly.
inline double number(std::uint64_t stream, int i) {
  return double(float(philox{stream * 7919 + 1}.uniform(std::uint64_t(i)) * 2 - 1));
}

/// The chain in double: y, dx and the gradients of the parameters.
template <class... Ops>
struct chain;

template <class Op, class... Rest>
struct chain<Op, Rest...> {
  template <shape In>
  static void run(int count, const std::vector<double>& x, const std::vector<std::vector<double>>& w,
                  const std::vector<double>& dy, std::vector<double>& y, std::vector<double>& dx,
                  std::vector<std::vector<double>>& dw, std::size_t first = 0) {
    using K = kernel<reference, Op, precision::f64, In>;
    constexpr shape Out = Op::output_shape(In).value;
    constexpr std::size_t owned = parameters_of<Op>(In).size();
    operands<double> o;
    o.count = count;
    o.x[0] = x.data();
    std::vector<double> mine(std::size_t(count * Out.size()));
    o.y = mine.data();
    for (std::size_t k = 0; k < owned; ++k) o.w[k] = w[first + k].data(), o.dw[k] = dw[first + k].data();
    K::forward(o);
    std::vector<double> mine_dy;
    if constexpr (sizeof...(Rest) > 0) {
      chain<Rest...>::template run<Out>(count, mine, w, dy, y, mine_dy, dw, first + owned);
    } else {
      y = mine;
      mine_dy = dy;
    }
    o.dy = mine_dy.data();
    dx.assign(std::size_t(count * In.size()), 0);
    o.dx[0] = dx.data();
    K::backward(o);
  }
};

template <shape In>
constexpr shape shape_after() {
  return In;
}
template <shape In, class Op, class... Rest>
constexpr shape shape_after() {
  return shape_after<Op::output_shape(In).value, Rest...>();
}

template <shape In, class Op, class... Rest>
std::vector<int> parameter_sizes() {
  std::vector<int> sizes;
  for (const parameter& p : parameters_of<Op>(In)) sizes.push_back(p.extents.size());
  if constexpr (sizeof...(Rest) > 0)
    for (const int n : parameter_sizes<Op::output_shape(In).value, Rest...>()) sizes.push_back(n);
  return sizes;
}

/// Largest difference, relative to the largest expected number.
template <class T>
double difference(const T* a, const std::vector<double>& b) {
  double most = 0, size = 1e-30;
  for (std::size_t i = 0; i < b.size(); ++i) {
    most = test::larger(most, std::abs(double(a[i]) - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return most / size;
}

template <class K, class T, shape In, class... Ops>
void compare(type_list<Ops...>, double tolerance) {
  constexpr shape Out = shape_after<In, Ops...>();
  const std::vector<int> sizes = parameter_sizes<In, Ops...>();
  for (const int count : {1, 3, 16, 21}) {
    CAPTURE(count);
    std::vector<double> x(std::size_t(count * In.size())), dy(std::size_t(count * Out.size())), y, dx;
    std::vector<std::vector<double>> w, dw;
    for (int i = 0; i < count * In.size(); ++i) x[std::size_t(i)] = number(1, i);
    for (int i = 0; i < count * Out.size(); ++i) dy[std::size_t(i)] = number(2, i);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      w.emplace_back(std::size_t(sizes[p]));
      for (int i = 0; i < sizes[p]; ++i) w[p][std::size_t(i)] = number(3 + p, i);
      dw.emplace_back(std::size_t(sizes[p]));
    }
    chain<Ops...>::template run<In>(count, x, w, dy, y, dx, dw);

    const auto copied = [](const std::vector<double>& v, T* to) {
      std::transform(v.begin(), v.end(), to, [](double d) { return T(d); });
    };
    buffer<T> cx(count * In.size()), cdy(count * Out.size()), cy(count * Out.size(), T(NAN)), cdx(count * In.size(), T(NAN));
    buffer<T> saved(count * traits_of_kernel<K>.saved, T(NAN)),
        scratch(traits_of_kernel<K>.scratch + count * traits_of_kernel<K>.scratch_per_sample, T(NAN)),
        derived(traits_of_kernel<K>.derived, T(NAN));
    copied(x, cx.data), copied(dy, cdy.data);
    std::vector<buffer<T>*> cw, cdw;
    operands<T> o;
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      cw.push_back(new buffer<T>(sizes[p])), cdw.push_back(new buffer<T>(sizes[p], T(NAN)));
      copied(w[p], cw[p]->data);
      o.w[p] = cw[p]->data, o.dw[p] = cdw[p]->data;
    }
    if constexpr (requires { &K::derive; }) K::derive(o.w, derived.data);
    o.derived = derived.data;
    o.count = count, o.x[0] = cx.data, o.y = cy.data, o.dy = cdy.data, o.dx[0] = cdx.data;
    o.saved = saved.data, o.scratch = scratch.data;
    K::forward(o);
    CHECK(difference(cy.data, y) < tolerance);
    K::backward(o);
    CHECK(difference(cdx.data, dx) < tolerance);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      CAPTURE(p);
      CHECK(difference(cdw[p]->data, dw[p]) < tolerance);
    }

    // In micro-batches, the last one smaller, parameters get the same bits. The kernel also adds to dx, and runs without dx.
    std::vector<std::vector<T>> whole;
    for (std::size_t p = 0; p < sizes.size(); ++p) whole.emplace_back(cdw[p]->data, cdw[p]->data + sizes[p]);
    const std::vector<T> whole_y(cy.data, cy.data + cy.size);
    for (double& d : dx) d *= 2;
    operands<T> part = o;
    for (int first = 0; first < count; first += 5) {
      part.count = std::min(5, count - first);
      part.x[0] = o.x[0] + first * In.size(), part.y = o.y + first * Out.size(), part.dy = o.dy + first * Out.size();
      part.dx[0] = first == 5 ? nullptr : o.dx[0] + first * In.size();
      part.adds_dx[0] = true, part.adds_dw = first > 0;
      K::forward(part);
      K::backward(part);
    }
    for (int i = 5 * In.size(); i < std::min(count, 10) * In.size(); ++i) dx[std::size_t(i)] /= 2;
    CHECK(difference(cdx.data, dx) < tolerance);
    CHECK(std::equal(whole_y.begin(), whole_y.end(), cy.data));
    for (std::size_t p = 0; p < sizes.size(); ++p) CHECK(std::equal(whole[p].begin(), whole[p].end(), cdw[p]->data));

    for (std::size_t p = 0; p < sizes.size(); ++p) delete cw[p], delete cdw[p];
  }
}

}  // namespace cpu_compare

/// Compares K with a chain of reference kernels. single: the tolerance in float.
template <class K, class Ops, class T, strata::shape In>
void compare_with_reference(double single = 1e-5) {
  cpu_compare::compare<K, T, In>(Ops{}, sizeof(T) == 4 ? single : 1e-12);
}
