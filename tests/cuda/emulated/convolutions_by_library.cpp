// Kernels that call cuDNN, against the reference and for any number of devices; and descriptions that the library refuses.
// needs: emulated_cuda
#include "libraries.hpp"

#include <cstring>
#include <strata/strata.hpp>
#include <string>
#include <thread>

using namespace strata;
using namespace strata::core;
using namespace strata::test;

#if defined(STRATA_CUDNN) || !defined(__CUDACC__)
namespace {
using machine::dnn_convolution, machine::dnn_direction, machine::factor_type, machine::library_convolution;

/// Compares the kernel that calls the library, also at sizes where the rule would not choose it. In bfloat16 results are rounded.
template <class P, conv_settings S, shape In, class... A>
void compare_convolution() {
  have_devices(1);
  using K = machine::library_convolution_kernel<S, activation_of<A...>, P, In>;
  compare_kernel<K, P, In>(type_list<convolution<S>, A...>{}, std::is_same_v<P, precision::mixed_bf16> ? 4e-3 : 2e-5,
                           {{64, 64}, {130, 64}, {51, 64}, {5, 4}}, drops_bits<P>);
}

constexpr conv_settings plain{.filters = 8, .kernel_height = 3, .kernel_width = 3},
    strided{.filters = 16, .kernel_height = 3, .kernel_width = 2, .stride_height = 2, .same = true, .bias = false},
    dilated{.filters = 8, .kernel_height = 2, .kernel_width = 3, .dilation_width = 2, .same = true};
}  // namespace

TEST_CASE("convolutions by cuDNN") {
  const library_that has_all(true, true);
#if !defined(__CUDACC__)
  have_devices(1);
  machine::take_counts(0);
#endif
  compare_convolution<precision::mixed_bf16, plain, shape{9, 8, 8}>();
  compare_convolution<precision::mixed_bf16, strided, shape{12, 7, 8}, relu>();
  compare_convolution<precision::tf32, plain, shape{9, 8, 8}, relu>();
  compare_convolution<precision::f32, dilated, shape{7, 8, 16}, tanh_activation>();
#if !defined(__CUDACC__)
  CHECK(machine::take_counts(0).library_calls > 0);
#endif
}
TEST_CASE("convolutions where the library fuses nothing, or has no plan") {
  const library_that fuses_nothing(true, false);
  compare_convolution<precision::tf32, plain, shape{9, 8, 8}, relu>();
  const library_that has_nothing(false, false);
  compare_convolution<precision::mixed_bf16, plain, shape{9, 8, 8}>();
}

TEST_CASE("descriptions that describe no convolution") {
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  const dnn_convolution good{
      dnn_direction::forward, factor_type::f32, 2, {6, 4, 3}, {5, 5, 3, 1, 1, 1, 1}, 8, 16, true, true, 16};
  const auto refusal = [&](auto&& change) {
    dnn_convolution bad = good;
    change(bad);
    const std::string all = error_of([&] { (void)library_convolution::find(q, bad); });
    return all.substr(all.rfind(": ") + 2);
  };
  CHECK(library_convolution::find(q, good));
  CHECK(refusal([](auto& c) { c.images = 0; }) == "it has at least one image, channel and filter");
  CHECK(refusal([](auto& c) { c.down.stride = 0; }) == "extents, strides and dilations are at least 1");
  CHECK(refusal([](auto& c) { c.across.padding_after = -1; }) == "padding is not negative");
  CHECK(refusal([](auto& c) { c.down.out = 5; }) == "the outputs have another extent");
  CHECK(refusal([](auto& c) { c.across.padding_after = 0; }) == "the outputs have another extent");
  CHECK(refusal([](auto& c) { c.direction = dnn_direction::kernel_gradient; }) == "only forward has a bias and relu");
  CHECK(refusal([](auto& c) { c.factors = factor_type::bf16; }) == "a bias needs outputs in float");
  CHECK(refusal([](auto& c) { c.alignment = 8; }) == "an alignment is a power of two of at least 16 bytes");
}

#if !defined(__CUDACC__)
TEST_CASE("addresses that are not aligned, or where no memory is") {
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  const dnn_convolution what{dnn_direction::forward, factor_type::f32, 1, {2, 2, 1}, {2, 2, 1}, 8, 8, false, false, 16};
  const device_array<float> x(q, 32, 1.f), w(q, 64, 1.f), y(q, 32, 0.f), workspace(q, machine::dnn_workspace, 0.f);
  const auto calls = library_convolution::find(q, what);
  REQUIRE(calls);
  calls->run(q, {x.data(), w.data(), y.data(), nullptr, workspace.data()});
  CHECK(y.values() == std::vector<float>(32, 8));
  CHECK(error_of([&] {
          calls->run(q, {x.data() + 1, w.data(), y.data(), nullptr, workspace.data()});
        }).ends_with("the address of the inputs is not aligned, or null"));
  CHECK(error_of([&] {
          calls->run(q, {x.data(), w.data() + 4, y.data(), nullptr, workspace.data()});
        }).ends_with("the kernel is not in memory of gpu(0)"));
}

TEST_CASE("a plan is chosen once; it is the fastest of those that give the same bits in each run") {
  const library_that has_all(true, true);
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  const dnn_convolution what{dnn_direction::kernel_gradient, factor_type::bf16, 2, {6, 4, 3}, {5, 3, 3}, 8, 8, false, false, 16};
  CHECK(library_convolution::find(q, what)->plan().text() == "plan 3");
  machine::take_counts(0);
  CHECK(library_convolution::find(q, what)->plan().text() == "plan 3");
  CHECK(machine::take_counts(0).kernels == 0);
}

TEST_CASE("steps with cuDNN are captured again in another thread") {
  using small = sequential<input<8, 8, 64>, conv2d<64, 1, relu>, global_average_pool2d, dense<3, softmax>>;
  const library_that has_all(true, true);
  have_devices(1);
  const std::vector<float> x(32 * 8 * 8 * 64, 0.5f);
  const std::vector<std::int32_t> labels(32, 1);
  trainer model{small{}, sgd{}, sparse_categorical_crossentropy{}, one_device{gpu(0), {.leaves = 1}}, seed(7)};
  for (int thread = 0; thread < 2; ++thread) {
    machine::take_counts(0);
    std::string failure;
    std::thread([&] { failure = error_of([&] { model.fit(x, labels, epochs(1), batch_size(32), verbosity::off); }); }).join();
    CHECK(failure == "no error");
    const machine::work_counts counts = machine::take_counts(0);
    CHECK(counts.captures > 0);
    CHECK(counts.library_calls > 0);
  }
}

namespace {
using network = sequential<input<8, 8, 64>, residual<conv2d<64, 1, relu>>, conv2d<64, 1, no_bias>, batch_norm<>, activation<relu>,
                           conv2d<64, 1, relu>, global_average_pool2d, dense<3, softmax>>;

/// Weights after some steps, with a batch that has a leaf with fewer samples.
template <class P>
std::vector<float> trained(const auto& strategy, long* library_calls = nullptr) {
  constexpr std::size_t count = 130, size = 8 * 8 * 64;
  std::vector<float> x(count * size);
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i) - 0.5);
  for (std::size_t i = 0; i < count; ++i) labels[i] = int(i % 3);
  trainer model{network{}, sgd{.learning_rate = 0.1}, sparse_categorical_crossentropy{}, strategy, seed(7), P{}};
  model.fit(x, labels, epochs(1), batch_size(130), shuffle(false), verbosity::off);
  if (library_calls) *library_calls = machine::take_counts(0).library_calls;
  const auto w = model.parameters();
  return {w.begin(), w.end()};
}
}  // namespace

TEST_CASE_TEMPLATE("a network with convolutions of cuDNN: nearly the numbers of the CPU, the same bits on 1, 2 and 4 devices", P,
                   precision::f32, precision::mixed_bf16) {
  const library_that has_all(true, true);
  const auto expected = trained<precision::f32>(one_device{{.threads = 1, .leaves = 4}});
  have_devices(1);
  long library_calls = 0;
  const auto one = trained<P>(on_devices(1), &library_calls);
  CHECK(library_calls > 3 * 4 * 3);
  CHECK(difference(one, std::vector<double>(expected.begin(), expected.end())) <
        (std::is_same_v<P, precision::f32> ? 1e-4 : 1e-2));
  for (const int devices : {2, 4}) {
    CAPTURE(devices);
    have_devices(devices, std::uint64_t(devices));
    const auto several = trained<P>(on_devices(devices));
    CHECK(std::memcmp(several.data(), one.data(), one.size() * sizeof(float)) == 0);
  }
}
#endif
#endif
