// The products of dense layers have several ways to the same result: all of them give the same bits.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/dense.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::simd;

namespace {

template <class T>
struct numbers : buffer<T> {
  numbers(int n, std::uint64_t stream) : buffer<T>(n) {
    for (int i = 0; i < n; ++i) this->data[i] = T(float(cpu_compare::number(stream, i)));
  }
};

template <class T>
bool equal_bits(const buffer<T>& a, const buffer<T>& b) {
  return std::equal(a.data, a.data + a.size, b.data);
}

/// Checks products with packed panels, long enough for two pieces of a panel.
template <class T, int N, storage How>
void check_packed(int rows) {
  const int length = 2 * packed_numbers<T> / (most_vectors * lanes<T>)-3;
  CAPTURE(N);
  CAPTURE(rows);
  const numbers<T> a(rows * length, 1), b(length * N, 2), bias(N, 3);
  buffer<T> transposed(length * N), packed(packed_numbers<T>);
  for (int k = 0; k < length; ++k)
    for (int j = 0; j < N; ++j) transposed.data[j * length + k] = b.data[k * N + j];
  for (const bool add : {false, true}) {
    buffer<T> expected(rows * N, T(2)), c(rows * N, T(2));
    product<T> p{rows, a.data, {length}, one_run, 1, length, 1, b.data, N, expected.data, {N}, bias.data, add};
    simd::multiply<N, 0, relu>(p);
    p.c = c.data;
    if (How == storage::transposed) p.b = transposed.data, p.b_stride = length;
    multiply_packed<N, 0, relu>(p, How, packed.data);
    CHECK(equal_bits(c, expected));
    if (!add) {
      double sum = double(bias.data[N - 1]);
      for (int k = 0; k < length; ++k) sum += double(a.data[(rows - 1) * length + k]) * double(b.data[k * N + N - 1]);
      CHECK(double(c.data[rows * N - 1]) == doctest::Approx(sum > 0 ? sum : 0).epsilon(1e-4));
    }
  }
}

/// Compares single rows, whose panels are wider, with several rows at a time.
template <class T, int N>
void check_one_row() {
  constexpr int K = 5;
  CAPTURE(N);
  const numbers<T> a(2 * K, 1), b(K * N, 2), bias(N, 3);
  buffer<T> both(2 * N), each(2 * N, T(NAN));
  simd::multiply<N, 0>(product<T>{2, a.data, {K}, one_run, 1, K, 1, b.data, N, both.data, {N}, bias.data});
  for (int r = 0; r < 2; ++r)
    simd::multiply<N, 0>(product<T>{1, a.data + r * K, {K}, one_run, 1, K, 1, b.data, N, each.data + r * N, {N}, bias.data});
  CHECK(equal_bits(both, each));
}

template <class T, int K, int N>
void check_input_gradient(int count) {
  CAPTURE(K);
  CAPTURE(N);
  CAPTURE(count);
  const numbers<T> dz(count * N, 1), w(K * N, 2);
  for (const bool add : {false, true}) {
    buffer<T> samples(count * K, T(2)), squares(count * K, T(2)), packed(count * K, T(2));
    buffer<T> scratch(std::max(packed_numbers<T>, samples_as_vectors<T, N>::scratch), T(NAN));
    samples_as_vectors<T, N>::input_gradient(dz.data, count, w.data, K, samples.data, add, scratch.data);
    few_samples<T>::input_gradient(dz.data, count, w.data, K, N, squares.data, add);
    multiply_packed<K, 0>(product<T>{count, dz.data, {N}, one_run, 1, N, 1, w.data, N, packed.data, {K}, nullptr, add},
                          storage::transposed, scratch.data);
    CHECK(equal_bits(samples, squares));
    CHECK(equal_bits(samples, packed));
  }
}

/// Checks gradients that are passed on in pieces. `sparse`: most inputs are zeros, which are skipped.
template <class T, int K, int N>
void check_pieces(int count, bool sparse = false) {
  CAPTURE(N);
  CAPTURE(count);
  constexpr dense_settings S{N};
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using kernel = strata::core::kernel<cpu, fused<affine<S>, relu>, P, shape{K}>;
  constexpr int alignment = 64 / int(sizeof(T));
  const numbers<T> x(count * K, 1), w(K * N, 2), b(N, 3), dy(count * N, 4);
  if (sparse) {
    for (int i = 0; i < x.size; ++i)
      if (philox{5}.uniform(std::uint64_t(i)) >= 0.1) x.data[i] = 0;
    CHECK((dense_products<T, K, N>::looks_for_zeros && many_zeros(x.data, x.size, N)));
  }
  buffer<T> y(count * N), dx(count * K), dw(aligned_size<T>(K * N)), db(N), other_dx(count * K), room(aligned_size<T>(K * N)),
      scratch(traits_of_kernel<kernel>.scratch + count * traits_of_kernel<kernel>.scratch_per_sample, T(NAN));
  buffer<T> pieces[2] = {buffer<T>(aligned_size<T>(K * N), T(NAN)), buffer<T>(aligned_size<T>(N), T(NAN))};
  operands<T> o;
  o.count = count, o.x[0] = x.data, o.w[0] = w.data, o.w[1] = b.data, o.y = y.data, o.dy = dy.data, o.scratch = scratch.data;
  o.dx[0] = dx.data, o.dw[0] = dw.data, o.dw[1] = db.data;
  kernel::forward(o);
  kernel::backward(o);
  o.dx[0] = other_dx.data, o.dw[0] = room.data;
  const gradient_sink<T> sink{
      pieces,
      [](void* context, int parameter, long first, long size, T* sums) {
        CHECK(first % alignment == 0);
        const long padded = (size + alignment - 1) / alignment * alignment;
        std::copy_n(sums, padded, static_cast<buffer<T>*>(context)[parameter].data + first);
        std::fill_n(sums, padded, T(NAN));  // as an update may
      },
      [](void* context, int parameter, const T* samples, const T* dz, int n, int rows, int columns) {
        T* const to = static_cast<buffer<T>*>(context)[parameter].data;
        simd::multiply<N, K>(product<T>{rows, samples, {1}, one_run, 1, n, rows, dz, columns, to, {columns}});
      }};
  kernel::backward_into(o, sink);
  CHECK(equal_bits(dx, other_dx));
  CHECK(std::equal(dw.data, dw.data + K * N, pieces[0].data));
  CHECK(std::equal(db.data, db.data + N, pieces[1].data));
  for (int i = K * N; i < pieces[0].size; ++i) CHECK(pieces[0].data[i] == 0);
  for (int i = N; i < pieces[1].size; ++i) CHECK(pieces[1].data[i] == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("packed products", T, float, double) {
  for (const int rows : {1, 9}) check_packed<T, 10, storage::plain>(rows), check_packed<T, 150, storage::plain>(rows);
  check_packed<T, 10, storage::transposed>(4);
  check_packed<T, 150, storage::transposed>(7);
}
TEST_CASE_TEMPLATE("one row", T, float, double) {
  check_one_row<T, 7>();
  check_one_row<T, 64>();
  check_one_row<T, 161>();
  check_one_row<T, 600>();
}
TEST_CASE_TEMPLATE("input gradients", T, float, double) {
  for (const int count : {1, 8, 19, 40, 70}) check_input_gradient<T, 50, 37>(count);
  check_input_gradient<T, 33, 600>(17);
}
TEST_CASE_TEMPLATE("gradients in pieces", T, float, double) {
  check_pieces<T, 53, 7>(3);
  check_pieces<T, 100, 64>(9);
  check_pieces<T, 100, 64>(5);
  check_pieces<T, 100, 64>(9, true);
  check_pieces<T, 100, 320>(11, true);
  check_pieces<T, 20, 310>(1);
  check_pieces<T, 20, 320>(11);
}
