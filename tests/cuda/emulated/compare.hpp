// Runs kernels of the CUDA backend and the reference kernels that they replace on the same numbers. nvcc compiles it, too: then
// the kernels run on a device.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <strata/base/precision.hpp>
#include <strata/base/random.hpp>
#include <strata/cuda/kernels/kernels.hpp>
#include <strata/network/work.hpp>
#include <strata/reference/reference.hpp>
#include <utility>
#include <vector>

#include "unit/larger.hpp"

namespace strata::test {
using namespace core;

/// Devices for a test, unless it runs on real ones.
inline void have_devices([[maybe_unused]] int count, [[maybe_unused]] std::uint64_t seed = 1) {
#if !defined(__CUDACC__)
  machine::emulate_devices(count, std::size_t{256} << 20);
  machine::emulate_order(seed);
#endif
}

/// Numbers in (-1, 1), exact in float.
inline double number(std::uint64_t stream, std::size_t i) { return double(float(philox{stream * 7919 + 1}.uniform(i) * 2 - 1)); }
inline std::vector<double> numbers(std::uint64_t stream, std::size_t count) {
  std::vector<double> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = number(stream, i);
  return all;
}

/// The largest difference, relative to the largest expected number; nan if any is nan.
template <class T>
double difference(const std::vector<T>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0, size = 1e-30;
  for (std::size_t i = 0; i < b.size(); ++i) {
    most = larger(most, std::abs(double(a[i]) - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return most / size;
}

/// An array of the device.
template <class T>
class device_array {
  cuda_device on_;
  machine::queue queue_;
  cuda_device::buffer<T> memory_;

 public:
  device_array(const machine::queue& q, std::size_t size, T value) : queue_(q), memory_(on_.allocate<T>(size)) {
    const std::vector<T> values(size, value);
    on_.copy_to_device(queue_, std::span<const T>(values), memory_.data());
    on_.wait(queue_);
  }
  device_array(const machine::queue& q, const std::vector<double>& from) : queue_(q), memory_(on_.allocate<T>(from.size())) {
    std::vector<T> values(from.begin(), from.end());
    on_.copy_to_device(queue_, std::span<const T>(values), memory_.data());
    on_.wait(queue_);
  }
  T* data() const { return memory_.data(); }
  std::vector<T> values() const {
    std::vector<T> all(memory_.size());
    on_.copy_to_host(queue_, static_cast<const T*>(memory_.data()), std::span(all));
    on_.wait(queue_);
    return all;
  }
};

/// The result of a chain of kernels for some samples.
struct expected_results {
  std::vector<double> y;
  std::vector<std::vector<double>> dx, dw;
};

/// x: of each input; the reference in double. Operations after the first have one input.
template <class Op, class... Rest>
struct reference_chain {
  template <shape... In>
  static expected_results run(int count, const std::vector<std::vector<double>>& x, const std::vector<std::vector<double>>& w,
                              const std::vector<double>& dy, const philox& random, std::int64_t first_sample,
                              std::size_t first = 0) {
    using K = kernel<reference, Op, precision::f64, In...>;
    constexpr shape inputs[] = {In...};
    constexpr shape Out = detail::output_shape_of<Op>(std::span(inputs)).value;
    constexpr std::size_t owned = parameters_of<Op>(inputs[0]).size();
    expected_results mine;
    operands<double> o;
    o.count = count, o.random = random, o.first_sample = first_sample;
    for (std::size_t k = 0; k < x.size(); ++k) {
      o.x[k] = x[k].data();
      mine.dx.emplace_back(x[k].size());
      o.dx[k] = mine.dx[k].data();
    }
    std::vector<double> y(std::size_t(count * Out.size()));
    o.y = y.data();
    for (std::size_t k = 0; k < owned; ++k) {
      o.w[k] = w[first + k].data();
      mine.dw.emplace_back(w[first + k].size());
    }
    for (std::size_t k = 0; k < owned; ++k) o.dw[k] = mine.dw[k].data();
    K::forward(o);
    std::vector<double> own_dy = dy;
    if constexpr (sizeof...(Rest) > 0) {
      expected_results after =
          reference_chain<Rest...>::template run<Out>(count, {y}, w, dy, random, first_sample, first + owned);
      mine.y = after.y, own_dy = after.dx[0];
      for (auto& each : after.dw) mine.dw.push_back(each);
    } else {
      mine.y = y;
    }
    o.dy = own_dy.data();
    K::backward(o);
    return mine;
  }
};

template <class... Ops>
struct operation_of {
  using type = fused<Ops...>;
};
template <class Op>
struct operation_of<Op> {
  using type = Op;
};

template <class Op>
bool parameters_are_trained(shape in, std::size_t p) {
  const auto all = parameters_of<Op>(in);
  return p >= all.size() || all[p].trainable;
}

/// The samples of a batch, and the most that a leaf has.
using samples_and_capacity = std::pair<int, int>;

/// Compares K, a kernel for a chain of operations: forward, backward, leaf by leaf, and when it adds to gradients. Where P rounds
/// the operands of products, the reference gets the rounded ones: the chain is then a product and at most an activation whose
/// slopes are 0 and 1. With `gets_rounded`, the kernel gets rounded operands, too.
template <class K, class P, shape First, shape... More, class Op, class... Rest>
void compare_kernel(type_list<Op, Rest...>, double tolerance, std::initializer_list<samples_and_capacity> cases,
                    bool gets_rounded = false) {
  using T = typename P::value_type;
  constexpr shape inputs[] = {First, More...};
  constexpr std::size_t arity = 1 + sizeof...(More);
  std::vector<std::size_t> sizes;
  std::size_t out = 0;
  [&] {
    shape at = First;
    bool is_first = true;
    const auto add = [&]<class O>(std::type_identity<O>) {
      for (const parameter& p : parameters_of<O>(at)) sizes.push_back(std::size_t(p.extents.size()));
      at = is_first ? detail::output_shape_of<O>(std::span(inputs)).value : detail::output_shape_of<O>(std::span(&at, 1)).value;
      is_first = false;
    };
    add(std::type_identity<Op>{});
    (add(std::type_identity<Rest>{}), ...);
    out = std::size_t(at.size());
  }();
  for (const auto& [batch, most] : cases) {
    const int count = batch, capacity = most;  // clang++ 14 captures no structured bindings
    CAPTURE(count);
    const int leaves = count % 2 == 0 ? count / capacity + 2 : (count + capacity - 1) / capacity;  // some without samples
    const auto n = std::size_t(count);
    const philox random{42};
    const machine::queue q = cuda_device(0).make_queue();
    std::vector<std::vector<double>> x, w;
    for (std::size_t k = 0; k < arity; ++k) x.push_back(numbers(1 + k, n * std::size_t(inputs[k].size())));
    if constexpr (traits_of<Op>.looks_up)
      for (double& each : x[0]) each = double(int(std::abs(each) * parameters_of<Op>(First)[0].extents[0]));
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      w.push_back(numbers(20 + p, sizes[p]));
      for (double& each : w.back()) each = std::abs(each) + (p == 1 && sizes.size() == 2 ? 0.1 : -0.3);  // a variance is positive
    }
    std::vector<double> dy = numbers(10, n * out);
    constexpr bool rounds = !std::is_same_v<P, precision::f32> && !std::is_same_v<P, precision::f64>;
    auto given_x = x, given_w = w;
    auto given_dy = dy;
    if constexpr (rounds) {
      for (std::vector<double>* operand : {&x[0], &w[0], &dy})
        for (double& each : *operand) each = double(machine::rounded_operand<P>(T(each)));
      if (gets_rounded) given_x = x, given_w = w, given_dy = dy;
    }

    std::vector<device_array<T>> dx, dw, weights, xs;
    std::vector<long> at;
    long stride = 0;
    for (const std::size_t size : sizes) at.push_back(stride), stride += long(size) + 3;
    operands<T> o;
    o.count = count, o.random = random, o.first_sample = 7;
    o.leaves = {leaves, capacity, stride, 0};
    for (std::size_t k = 0; k < arity; ++k) {
      xs.emplace_back(q, given_x[k]);
      dx.emplace_back(q, x[k].size(), T(NAN));
      o.x[k] = xs[k].data(), o.dx[k] = dx[k].data();
    }
    device_array<T> all_dw(q, std::size_t(stride * leaves) + 1, T(NAN));
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      weights.emplace_back(q, given_w[p]);
      o.w[p] = weights[p].data(), o.dw[p] = all_dw.data() + at[p];
    }
    device_array<T> y(q, n * out, T(NAN)), from(q, given_dy),
        saved(q, n * std::size_t(strata::core::traits_of_kernel<K>.saved) + 1, T(NAN)),
        scratch(q,
                std::size_t(strata::core::traits_of_kernel<K>.scratch) +
                    n * std::size_t(strata::core::traits_of_kernel<K>.scratch_per_sample) + 1,
                T(NAN));
    o.y = y.data(), o.dy = from.data(), o.saved = saved.data(), o.scratch = scratch.data();

    [[maybe_unused]] std::shared_ptr<const void> prepared;
    if constexpr (requires { &K::prepare; }) prepared = K::prepare(q, o, true), o.prepared = prepared.get();
    const auto expected = reference_chain<Op, Rest...>::template run<First, More...>(count, x, w, dy, random, 7);
    K::forward(q, o);
    CHECK(difference(y.values(), expected.y) < tolerance);
    K::backward(q, o);
    const auto check_gradients = [&](double times) {
      for (std::size_t k = 0; k < arity && !traits_of<Op>.looks_up; ++k) {
        std::vector<double> wanted = expected.dx[k];
        for (double& each : wanted) each *= times;
        CHECK(difference(dx[k].values(), wanted) < tolerance);
      }
      const std::vector<T> found = all_dw.values();
      for (int leaf = 0; leaf < leaves && !sizes.empty(); ++leaf) {
        CAPTURE(leaf);
        const int begin = std::min(leaf * capacity, count), size = std::min((leaf + 1) * capacity, count) - begin;
        std::vector<std::vector<double>> own;
        for (std::size_t k = 0; k < arity; ++k) {
          const auto in = x[k].begin();
          own.emplace_back(in + begin * inputs[k].size(), in + (begin + size) * inputs[k].size());
        }
        const std::vector<double> own_dy(dy.begin() + begin * long(out), dy.begin() + (begin + size) * long(out));
        const auto of_leaf = reference_chain<Op, Rest...>::template run<First, More...>(size, own, w, own_dy, random, 7 + begin);
        for (std::size_t p = 0; p < sizes.size(); ++p) {
          const auto first = found.begin() + leaf * stride + at[p];
          std::vector<double> wanted = of_leaf.dw[p];
          for (double& each : wanted) each *= times;
          if (parameters_are_trained<Op>(First, p))
            CHECK(difference(std::vector<T>(first, first + long(sizes[p])), wanted) < tolerance);
        }
        for (std::size_t p = 0; p < sizes.size(); ++p) CHECK(std::isnan(found[std::size_t(leaf * stride + at[p]) + sizes[p]]));
      }
    };
    check_gradients(1);
    o.adds_dw = true;
    for (bool& each : o.adds_dx) each = true;
    K::backward(q, o);
    check_gradients(2);
    for (T*& each : o.dx) each = nullptr;
    for (T*& each : o.dw) each = nullptr;
    K::backward(q, o);
    check_gradients(2);
  }
}

/// The kernel of the backend for a chain of operations, fused if there are several.
template <class P, shape... In, class... Ops>
void compare(type_list<Ops...> chain, double tolerance) {
  using K = kernel<cuda, typename operation_of<Ops...>::type, P, In...>;
  compare_kernel<K, P, In...>(chain, tolerance, {{1, 1}, {13, 4}, {6, 8}});
}

}  // namespace strata::test

/// Compares in both precisions. In: the shapes of the inputs.
template <class Ops, strata::shape... In>
void compare_with_reference() {
  strata::test::have_devices(1);
  strata::test::compare<strata::precision::f32, In...>(Ops{}, 2e-5);
  strata::test::compare<strata::precision::f64, In...>(Ops{}, 1e-11);
}

/// Compares with operands that are rounded to fewer bits. Sums are floats, so the tolerance is that of floats. A GPU may truncate
/// to TF32 instead of rounding.
template <class Ops, strata::shape... In>
void compare_with_rounded_reference() {
  strata::test::have_devices(1);
  strata::test::compare<strata::precision::mixed_bf16, In...>(Ops{}, 2e-5);
  strata::test::compare<strata::precision::tf32, In...>(Ops{}, 2e-5);
}
