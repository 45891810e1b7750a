// Dense layers together with their loss against the chain of reference kernels in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/dense_loss.hpp>
#include <strata/reference/activations.hpp>
#include <strata/reference/dense.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;
using cpu_compare::difference;
using cpu_compare::number;

namespace {

constexpr int K = 21;

template <class T>
struct numbers {
  std::vector<T> x, w, b, truth, y, dx, dw, db;
  std::vector<std::int32_t> labels;
  double loss[2] = {};

  numbers(int count, int N)
      : x(std::size_t(count * K)),
        w(std::size_t(K * N)),
        b(std::size_t(N)),
        truth(std::size_t(count * N)),
        y(std::size_t(count * N), T(NAN)),
        dx(x.size(), T(1)),
        dw(w.size(), T(NAN)),
        db(b.size(), T(NAN)),
        labels(std::size_t(count)) {
    const auto fill = [](std::vector<T>& v, std::uint64_t stream) {
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = T(float(number(stream, int(i))));
    };
    fill(x, 1), fill(w, 2), fill(b, 3);
    for (std::size_t i = 0; i < truth.size(); ++i) truth[i] = T(float(i % 3 == 0 ? 0 : number(4, int(i)) / 2 + 0.5));
    for (std::size_t n = 0; n < labels.size(); ++n) labels[n] = std::int32_t(n * 7) % N;
  }
  /// dx is added to the existing values.
  operands<T> all(int count) {
    operands<T> o;
    o.count = count, o.x[0] = x.data(), o.w[0] = w.data(), o.w[1] = b.data(), o.y = y.data();
    o.dx[0] = dx.data(), o.adds_dx[0] = true, o.dw[0] = dw.data(), o.dw[1] = db.data();
    o.labels = labels.data(), o.targets = truth.data(), o.loss = loss;
    return o;
  }
};

/// The layer, softmax unless the loss takes logits, and the loss as separate kernels.
template <class S, class L, int N>
void run_reference(numbers<double>& r, int count) {
  constexpr bool softmax_before = strata::detail::takes_softmax<L>;
  using layer = kernel<reference, S, precision::f64, shape{K}>;
  using end = kernel<reference, std::conditional_t<softmax_before, fused<softmax, L>, L>, precision::f64, shape{N}>;
  std::vector<double> logits(std::size_t(count * N)), dz(std::size_t(count * N)),
      scratch(std::size_t(traits_of_kernel<end>.scratch + count * traits_of_kernel<end>.scratch_per_sample));
  operands<double> first = r.all(count), second = r.all(count);
  first.y = logits.data(), first.dy = dz.data();
  second.x[0] = logits.data(), second.dx[0] = dz.data(), second.adds_dx[0] = false, second.scratch = scratch.data();
  layer::forward(first);
  end::forward(second);
  end::backward(second);
  layer::backward(first);
}

template <class T, int N, class L>
void check() {
  using S = affine<dense_settings{N}>;
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using kernel =
      strata::core::kernel<cpu, std::conditional_t<strata::detail::takes_softmax<L>, fused<S, softmax, L>, fused<S, L>>, P,
                           shape{K}>;
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
  CAPTURE(N);
  CAPTURE(L::name);
  for (const int count : {1, 5, 20}) {
    CAPTURE(count);
    numbers<double> expected(count, N);
    run_reference<S, L, N>(expected, count);
    numbers<T> r(count, N);
    buffer<T> scratch(traits_of_kernel<kernel>.scratch + count * traits_of_kernel<kernel>.scratch_per_sample, T(NAN));
    operands<T> o = r.all(count);
    o.scratch = scratch.data;
    kernel::forward(o);
    kernel::backward(o);
    CHECK(difference(r.y.data(), expected.y) < tolerance);
    CHECK(difference(r.dx.data(), expected.dx) < tolerance);
    CHECK(difference(r.dw.data(), expected.dw) < tolerance);
    CHECK(difference(r.db.data(), expected.db) < tolerance);
    CHECK(r.loss[0] == doctest::Approx(expected.loss[0]).epsilon(tolerance));
    CHECK(r.loss[1] == count);

    // Micro-batches give the same bits, and predictions are the same without labels.
    numbers<T> parts(count, N), predicted(count, N);
    for (int at = 0; at < count; at += 3) {
      operands<T> part = parts.all(std::min(3, count - at));
      part.x[0] += at * K, part.y += at * N, part.dx[0] += at * K, part.labels += at, part.targets += at * N;
      part.adds_dw = at > 0, part.scratch = scratch.data;
      kernel::forward(part);
      kernel::backward(part);
    }
    CHECK(parts.y == r.y);
    CHECK(parts.dx == r.dx);
    CHECK(parts.dw == r.dw);
    CHECK(parts.db == r.db);
    CHECK(parts.loss[0] == r.loss[0]);
    operands<T> blind = predicted.all(count);
    blind.loss = nullptr, blind.labels = nullptr, blind.targets = nullptr, blind.scratch = scratch.data;
    kernel::forward(blind);
    CHECK(predicted.y == r.y);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("dense layer, softmax and crossentropy in one", T, float, double) {
  check<T, 10, sparse_categorical_crossentropy<>>();
  check<T, 37, sparse_categorical_crossentropy<>>();
  check<T, 10, categorical_crossentropy<>>();
  check<T, 19, categorical_crossentropy<label_smoothing<0.1_r>>>();
}
TEST_CASE_TEMPLATE("dense layer and a crossentropy of logits in one", T, float, double) {
  check<T, 10, sparse_categorical_crossentropy<from_logits>>();
  check<T, 18, categorical_crossentropy<from_logits>>();
}
