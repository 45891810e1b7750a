// precision::mixed_bf16 end to end: it uses its kernels, learns like f32, and gives the same bits on any number of threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <strata/cpu/mixed/mixed.hpp>
#include <strata/strata.hpp>

using namespace strata;
using namespace strata::core;

namespace {

using net = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<32, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;

struct outcome {
  double loss;
  std::vector<float> weights;
};

template <class Precision>
outcome train(Precision precision, compute_options how) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{how}, precision};
  auto source = data::synthetic_digits(300, 1) | data::shuffle(300) | data::batch<32>;
  const double loss = model.fit(source, epochs(4), verbosity::off).all().back()["loss"];
  return {loss, {model.parameters().begin(), model.parameters().end()}};
}

}  // namespace

TEST_CASE("mixed precision learns like f32") {
  const outcome full = train(precision::f32{}, {.threads = 1}), mixed = train(precision::mixed_bf16{}, {.threads = 1});
  CHECK(full.loss < 1.5);
  CHECK(mixed.loss == doctest::Approx(full.loss).epsilon(0.03));
  CHECK(mixed.weights != full.weights);
  CHECK(train(precision::mixed_bf16{}, {.threads = 2, .micro_batch = 3}).weights == mixed.weights);
}

TEST_CASE("mixed precision finds its kernels, and those of f32 where it has none") {
  using whole = program<net, sparse_categorical_crossentropy<>, adam, type_list<>, precision::mixed_bf16>;
  using second = kernel_at<whole, cpu, 1>;
  using third = kernel_at<whole, cpu, 2>;
  CHECK(std::is_base_of_v<simd::mixed_conv_pool<simd::bf16, conv_settings{32, 3, 3}, pool_settings{2, 2}, shape{13, 13, 32}>,
                          second>);
  CHECK(std::is_base_of_v<simd::mixed_dense<simd::bf16, dense_settings{64}, relu, shape{800}>, third>);
  CHECK(first_without_kernel<whole, cpu> < 0);
}
