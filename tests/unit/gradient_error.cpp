// gradient_error, the check that users run: small for right gradients, large for wrong ones.
#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <strata/strata.hpp>
#include <strata/train/gradient_check.hpp>
#include <vector>

using namespace strata;

namespace {

/// log(cosh(e)), with a factor that only the gradient has.
template <int Percent>
struct log_cosh {
  static constexpr auto name = "log_cosh";
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

TEST_CASE("right gradients") {
  const batch_of_6 batch(4, 3);
  CHECK(gradient_error(sequential<input<4>, dense<8, tanh_activation>, dropout<0.5_r>, batch_norm<>, dense<3>>{}, log_cosh<100>{},
                       {batch.x.data(), batch.y.data(), 6}) < 1e-6);
  CHECK(gradient_error(sequential<input<4>, dense<8, tanh_activation, kernel_regularizer<l2<>>>, dense<3, softmax>>{},
                       sparse_categorical_crossentropy{}, {batch.x.data(), batch.labels.data(), 6}) < 1e-6);
}

TEST_CASE("a gradient that is wrong by a percent") {
  const batch_of_6 batch(4, 3);
  const double error = gradient_error(sequential<input<4>, dense<3>>{}, log_cosh<101>{}, {batch.x.data(), batch.y.data(), 6});
  CHECK((error > 1e-3 && error < 0.1));
}
