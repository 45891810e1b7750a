// Kernels with bfloat16 products. On small integers, where nothing is rounded, they must agree exactly with the reference in
// double; on other inputs approximately, and exactly with the version that does not use the instruction.
#pragma once
#include <memory>
#include <strata/cpu/engine/team.hpp>

#include "cpu_compare.hpp"

namespace cpu_mixed {
using namespace strata;
using namespace strata::core;

struct numbers {
  std::vector<double> x, dy;
  std::vector<std::vector<double>> w;
};

/// Inputs: integers up to 3; weights: multiples of w_step up to 3 w_step; dy: integers up to 3. Or all in (-1, 1).
template <shape In, class... Ops>
numbers make_numbers(int count, bool integers, int w_step) {
  const auto fill = [&](std::uint64_t stream, int n, double size) {
    std::vector<double> v;
    for (int i = 0; i < n; ++i) {
      const double u = cpu_compare::number(stream, i);
      v.push_back(integers ? std::round(u * 3.4) * size : u);
    }
    return v;
  };
  numbers out{fill(1, count * In.size(), 1), fill(2, count * cpu_compare::shape_after<In, Ops...>().size(), 1), {}};
  for (const int n : cpu_compare::parameter_sizes<In, Ops...>()) out.w.push_back(fill(3 + out.w.size(), n, w_step));
  return out;
}

struct results {
  std::vector<float> y, dx;
  std::vector<std::vector<float>> dw;
  bool operator==(const results&) const = default;
};

/// Runs K in micro-batches of `step` samples. If adds_dx, dx is added to zeros.
template <class K, shape In, class... Ops>
results run(const numbers& in, int count, int step, bool adds_dx = false) {
  const flush_denormals scope;
  constexpr int out_size = cpu_compare::shape_after<In, Ops...>().size();
  const auto copied = [](const std::vector<double>& v, buffer<float>& to) {
    std::transform(v.begin(), v.end(), to.data, [](double d) { return float(d); });
  };
  buffer<float> x(count * In.size()), dy(count * out_size), y(count * out_size, NAN), dx(count * In.size(), adds_dx ? 0.f : NAN);
  buffer<float> saved(step * traits_of_kernel<K>.saved, NAN),
      scratch(traits_of_kernel<K>.scratch + step * traits_of_kernel<K>.scratch_per_sample, NAN),
      derived(traits_of_kernel<K>.derived, NAN);
  copied(in.x, x), copied(in.dy, dy);
  std::vector<std::unique_ptr<buffer<float>>> w, dw;
  operands<float> o;
  for (std::size_t p = 0; p < in.w.size(); ++p) {
    w.push_back(std::make_unique<buffer<float>>(int(in.w[p].size())));
    dw.push_back(std::make_unique<buffer<float>>(int(in.w[p].size()), NAN));
    copied(in.w[p], *w[p]);
    o.w[p] = w[p]->data, o.dw[p] = dw[p]->data;
  }
  if constexpr (requires { &K::derive; }) K::derive(o.w, derived.data);
  o.derived = derived.data, o.saved = saved.data, o.scratch = scratch.data;
  for (int first = 0; first < count; first += step) {
    o.count = std::min(step, count - first);
    o.x[0] = x.data + first * In.size(), o.dx[0] = dx.data + first * In.size(), o.adds_dx[0] = adds_dx;
    o.y = y.data + first * out_size, o.dy = dy.data + first * out_size, o.adds_dw = first > 0;
    K::forward(o);
    K::backward(o);
  }
  results r{{y.data, y.data + y.size}, {dx.data, dx.data + dx.size}, {}};
  for (const auto& each : dw) r.dw.emplace_back(each->data, each->data + each->size);
  return r;
}

inline bool equal(const std::vector<float>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float f, double d) { return double(f) == d; });
}

/// Fast: the kernel under test, Slow: the same without the instruction. w_step: Winograd takes quarters of weights.
template <class Fast, class Slow, shape In, class... Ops>
void compare(type_list<Ops...>, int w_step, bool gradients_are_smooth) {
  constexpr int count = 7;
  {
    const numbers in = make_numbers<In, Ops...>(count, true, w_step);
    std::vector<double> y, dx;
    std::vector<std::vector<double>> dw;
    for (const auto& w : in.w) dw.emplace_back(w.size());
    cpu_compare::chain<Ops...>::template run<In>(count, in.x, in.w, in.dy, y, dx, dw);
    const results whole = run<Fast, In, Ops...>(in, count, count), parts = run<Fast, In, Ops...>(in, count, 3, true);
    CHECK(equal(whole.y, y));
    CHECK(equal(whole.dx, dx));
    for (std::size_t p = 0; p < dw.size(); ++p) CHECK(equal(whole.dw[p], dw[p]));
    CHECK(parts == whole);
  }
  {
    const numbers in = make_numbers<In, Ops...>(count, false, 1);
    std::vector<double> y, dx;
    std::vector<std::vector<double>> dw;
    for (const auto& w : in.w) dw.emplace_back(w.size());
    cpu_compare::chain<Ops...>::template run<In>(count, in.x, in.w, in.dy, y, dx, dw);
    const results whole = run<Fast, In, Ops...>(in, count, count);
    CHECK(cpu_compare::difference(whole.y.data(), y) < 0.02);
    CHECK(cpu_compare::difference(whole.y.data(), y) > 1e-5);  // or nothing was rounded
    if (gradients_are_smooth) {
      CHECK(cpu_compare::difference(whole.dx.data(), dx) < 0.02);
      for (std::size_t p = 0; p < dw.size(); ++p) CHECK(cpu_compare::difference(whole.dw[p].data(), dw[p]) < 0.02);
    }
    CHECK(run<Fast, In, Ops...>(in, count, 3) == whole);
    CHECK(run<Slow, In, Ops...>(in, count, 4) == whole);
  }
}

}  // namespace cpu_mixed
