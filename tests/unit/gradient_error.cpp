// gradient_error, the check that users run: small for right gradients, large for wrong ones.
#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <strata/strata.hpp>
#include <strata/train/gradient_error.hpp>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

/// log(cosh(e)), with a factor that only the gradient has.
template <int Percent>
struct steep_log_cosh {
  static constexpr auto name = "steep_log_cosh";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static T value(std::span<const T> prediction, std::span<const T> truth) {
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i) sum += std::log(std::cosh(prediction[i] - truth[i]));
    return sum / T(prediction.size());
  }
  template <class T>
  static void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    for (std::size_t i = 0; i < prediction.size(); ++i)
      dx[i] = std::tanh(prediction[i] - truth[i]) / T(prediction.size()) * T(Percent) / 100;
  }
};

/// 2 x, with Factor as its gradient.
template <int Factor>
struct twice {
  using is_activation = void;
  static constexpr auto name = "twice";
  static constexpr expected_shape output_shape(shape in) { return in; }
};

/// The gradient of the first output is nan, those of the others are wrong.
struct nan_of_first : steep_log_cosh<300> {
  template <class T>
  static void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    steep_log_cosh<300>::gradient(prediction, truth, dx);
    dx[0] = std::nan("");
  }
};

struct batch_of_6 {
  std::vector<double> x, y;
  std::vector<std::int32_t> labels;
  batch_of_6(int in, int out) {
    for (int i = 0; i < 6 * in; ++i) x.push_back(philox{1}.uniform(std::uint64_t(i)) * 2 - 1);
    for (int i = 0; i < 6 * out; ++i) y.push_back(philox{2}.uniform(std::uint64_t(i)));
    for (int i = 0; i < 6; ++i) labels.push_back(i % out);
  }
};

}  // namespace

template <int Factor, class P, shape In>
struct strata::core::kernel<strata::core::reference, twice<Factor>, P, In> {
  using T = typename P::value_type;
  static void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size(); ++i) o.y[i] = 2 * o.x[0][i];
  }
  static void backward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size(); ++i) o.dx[0][i] = Factor * o.dy[i] + (o.adds_dx[0] ? o.dx[0][i] : 0);
  }
};

TEST_CASE("right gradients") {
  const batch_of_6 batch(4, 3);
  CHECK(gradient_error(sequential<input<4>, dense<8, tanh_activation>, dropout<0.5_r>, batch_norm<>, dense<3>>{},
                       steep_log_cosh<100>{}, {batch.x.data(), batch.y.data(), 6}) < 1e-6);
  CHECK(gradient_error(sequential<input<4>, dense<8, tanh_activation, kernel_regularizer<l2<>>>, dense<3, softmax>>{},
                       sparse_categorical_crossentropy{}, {batch.x.data(), batch.labels.data(), 6}) < 1e-6);
}

TEST_CASE("the gradient of the input of a layer, from the parameters in front of it") {
  const batch_of_6 batch(4, 3);
  const samples<double> b{batch.x.data(), batch.y.data(), 6};
  CHECK(gradient_error(sequential<input<4>, dense<3>, twice<2>, dense<3>>{}, steep_log_cosh<100>{}, b) < 1e-6);
  CHECK(gradient_error(sequential<input<4>, dense<3>, twice<7>, dense<3>>{}, steep_log_cosh<100>{}, b) > 0.1);
}

TEST_CASE("a nan in a gradient is not hidden by a larger difference") {
  const batch_of_6 batch(4, 3);
  CHECK(std::isnan(gradient_error(sequential<input<4>, dense<3>>{}, nan_of_first{}, {batch.x.data(), batch.y.data(), 6})));
}

TEST_CASE("a gradient that is wrong by a percent") {
  const batch_of_6 batch(4, 3);
  const double error =
      gradient_error(sequential<input<4>, dense<3>>{}, steep_log_cosh<101>{}, {batch.x.data(), batch.y.data(), 6});
  CHECK((error > 1e-3 && error < 0.1));
}
