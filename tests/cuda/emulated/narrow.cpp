// Arrays between two layers that round them are stored as bfloat16: nothing changes but the memory.
// needs: emulated_cuda
#include <cmath>
#include <cstdint>
#include <limits>
#include <strata/callbacks/check_numerics.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/cuda/places.hpp>
#include <strata/program/least_bytes.hpp>
#include <strata/strata.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "libraries.hpp"
#include "unit/error_of.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using machine::bfloat16;
using bf16 = precision::mixed_bf16;

/// The results of a kernel on rounded elements.
struct results {
  std::vector<float> y, inferred, dx, dw;
};
std::vector<float> floats(const std::vector<float>& from) { return from; }
std::vector<float> floats(const std::vector<bfloat16>& from) { return {from.begin(), from.end()}; }
std::vector<float> rounded(std::vector<float> all) {
  for (float& each : all) each = float(bfloat16::nearest(each));
  return all;
}

template <class K, class X, class Y>
results results_of(std::span<const std::size_t> parameters, std::size_t in, std::size_t out, int count, int capacity) {
  const machine::queue q = cuda_device(0).make_queue();
  const auto array = [&]<class Element>(std::type_identity<Element>, std::uint64_t stream, std::size_t size) {
    std::vector<double> all = numbers(stream, size);
    for (double& each : all) each = double(float(bfloat16::nearest(float(stream < 5 ? each : std::abs(each) + 0.1))));
    if constexpr (std::is_same_v<Element, float>) {
      return device_array<float>(q, all);
    } else {
      device_array<bfloat16> narrow(q, size, bfloat16{});
      std::vector<bfloat16> stored;
      for (const double each : all) stored.push_back(bfloat16::nearest(float(each)));
      cuda_device().copy_to_device(q, std::span<const bfloat16>(stored), narrow.data());
      cuda_device().wait(q);
      return narrow;
    }
  };
  const auto n = std::size_t(count);
  if (traits_of_kernel<K>.statistics > 0) capacity = count;  // so that the statistics of the leaf are those of the batch
  const int leaves = (count + capacity - 1) / capacity + (traits_of_kernel<K>.statistics == 0);  // one without samples
  const auto x = array(std::type_identity<X>{}, 1, n * in), dx = array(std::type_identity<X>{}, 2, n * in);
  const auto y = array(std::type_identity<Y>{}, 3, n * out), dy = array(std::type_identity<Y>{}, 4, n * out);
  std::vector<device_array<float>> w;
  std::size_t stride = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    w.push_back(array(std::type_identity<float>{}, 5 + p, parameters[p])), stride += (parameters[p] + 15) / 16 * 16;
  const device_array<float> dw(q, stride * std::size_t(leaves), 0), saved(q, n * std::size_t(traits_of_kernel<K>.saved) + 16, 0),
      scratch(q, std::size_t(traits_of_kernel<K>.scratch) + n * std::size_t(traits_of_kernel<K>.scratch_per_sample) + 16, 0);
  operands<float> o;
  o.count = count;
  o.leaves = {leaves, capacity, long(stride), 0};
  o.x[0] = reinterpret_cast<const float*>(x.data()), o.dx[0] = reinterpret_cast<float*>(dx.data());
  o.y = reinterpret_cast<float*>(y.data()), o.dy = reinterpret_cast<const float*>(dy.data());
  for (std::size_t p = 0, at = 0; p < parameters.size(); at += (parameters[p++] + 15) / 16 * 16)
    o.w[p] = w[p].data(), o.dw[p] = dw.data() + at;
  o.saved = saved.data(), o.scratch = scratch.data();
  const device_array<double> sums(q, std::size_t(2 * traits_of_kernel<K>.statistics) + 1, 0);
  o.statistics = sums.data(), o.statistics_of_leaf = sums.data(), o.total = count;
  [[maybe_unused]] std::shared_ptr<const void> prepared;
  if constexpr (requires { &K::prepare; }) prepared = K::prepare(q, o, true), o.prepared = prepared.get();
  results all;
  if constexpr (requires { &K::infer; }) {
    K::infer(q, o);
    all.inferred = floats(y.values());
  }
  if constexpr (requires { &K::collect; }) K::collect(q, o);
  K::forward(q, o);
  all.y = floats(y.values());
  if constexpr (requires { &K::collect_backward; }) K::collect_backward(q, o);
  K::backward(q, o);
  all.dx = floats(dx.values()), all.dw = dw.values();
  return all;
}

/// The kernel K of a chain of operations stores narrow arrays as it would store floats that others would then round.
template <class K, class Op, class... Rest>
void compare_narrow(type_list<Op, Rest...>, shape in, std::initializer_list<samples_and_capacity> cases) {
  static_assert(traits_of_kernel<K>.input_end.is_possible && traits_of_kernel<K>.output_end.is_possible);
  have_devices(1);
  std::vector<std::size_t> parameters;
  for (const parameter& p : parameters_of<Op>(in)) parameters.push_back(std::size_t(p.extents.size()));
  shape out = detail::output_shape_of<Op>(std::span(&in, 1)).value;
  ((out = detail::output_shape_of<Rest>(std::span(&out, 1)).value), ...);
  const auto elements = std::size_t(in.size()), outputs = std::size_t(out.size());
  for (const auto& each : cases) {
    const int count = each.first, capacity = each.second;
    CAPTURE(count);
    const results exact = results_of<K, float, float>(parameters, elements, outputs, count, capacity);
    using narrow = typename K::template with_narrow<true, true>;
    const results found = results_of<narrow, bfloat16, bfloat16>(parameters, elements, outputs, count, capacity);
    CHECK(found.y == rounded(exact.y));
    CHECK(found.inferred == rounded(exact.inferred));
    CHECK(found.dx == rounded(exact.dx));
    CHECK(found.dw == exact.dw);
  }
}
template <class Chain>
struct fused_chain;
template <class... Ops>
struct fused_chain<type_list<Ops...>> : operation_of<Ops...> {};
template <shape In, class Chain>
void compare_narrow_of_ours(std::initializer_list<samples_and_capacity> cases) {
  compare_narrow<kernel<cuda, typename fused_chain<Chain>::type, bf16, In>>(Chain{}, In, cases);
}
}  // namespace

TEST_CASE("dense layers: by threads, and on tensor cores") {
  compare_narrow_of_ours<shape{30}, type_list<affine<dense_settings{.units = 22}>>>({{9, 4}});
  compare_narrow_of_ours<shape{400}, type_list<affine<dense_settings{.units = 70}>, relu>>({{9, 4}});
  compare_narrow_of_ours<shape{68}, type_list<affine<dense_settings{.units = 36}>, relu>>({{70, 64}, {9, 4}});
  compare_narrow_of_ours<shape{520}, type_list<affine<dense_settings{.units = 64, .bias = false}>, relu>>({{130, 64}});
}
TEST_CASE("convolutions: by threads, on tensor cores, with pooling, transposed") {
  using few = convolution<conv_settings{.filters = 6, .kernel_height = 3, .kernel_width = 2, .same = true}>;
  using many = convolution<conv_settings{.filters = 20, .kernel_height = 3, .kernel_width = 3}>;
  using pooled = max_pooling<pool_settings{2, 2}>;
  compare_narrow_of_ours<shape{5, 6, 3}, type_list<few>>({{3, 2}});
  compare_narrow_of_ours<shape{6, 7, 16}, type_list<many, relu>>({{5, 2}});
  compare_narrow_of_ours<shape{7, 7, 3}, type_list<many, relu, pooled>>({{5, 2}});
  compare_narrow_of_ours<shape{7, 9, 24}, type_list<many, relu, pooled>>({{5, 2}});
  using enlarges = transposed_convolution<transposed_conv_settings{
      .filters = 16, .kernel_height = 3, .kernel_width = 3, .stride_height = 2, .stride_width = 2, .bias = false}>;
  compare_narrow_of_ours<shape{3, 4, 16}, type_list<enlarges, relu>>({{3, 2}});
}

TEST_CASE("batch normalization, alone and with relu") {
  constexpr batch_norm_settings settings{};
  compare_narrow_of_ours<shape{3, 4, 6}, type_list<batch_normalization<settings>>>({{7, 7}});
  compare_narrow_of_ours<shape{3, 4, 6}, type_list<batch_normalization<settings>, relu>>({{7, 7}});
  compare_narrow_of_ours<shape{5}, type_list<batch_normalization<settings.when_frozen()>, relu>>({{6, 6}});
}

#if !defined(__CUDACC__)  // for arrays of another type a library may choose another algorithm, with other bits
TEST_CASE("layers by libraries: all that they fuse, less, and nothing") {
  static constexpr dense_settings units{.units = 48};
  static constexpr conv_settings filters{.filters = 8, .kernel_height = 3, .kernel_width = 3};
  using of_dense = machine::library_dense_kernel<units, relu, bf16, shape{40}>;
  using of_images = machine::library_convolution_kernel<filters, relu, bf16, shape{18, 18, 8}>;
  const auto compare_images = [] {
    compare_narrow<of_images>(type_list<convolution<filters>, relu>{}, shape{18, 18, 8}, {{20, 8}, {3, 2}});
  };
  const auto compare_dense = [] { compare_narrow<of_dense>(type_list<affine<units>, relu>{}, shape{40}, {{130, 64}, {9, 4}}); };
  {
    const library_that can_all(true, true);
    compare_dense();
    compare_images();
    compare_narrow<machine::library_dense_kernel<units, linear, bf16, shape{40}>>(type_list<affine<units>>{}, shape{40},
                                                                                  {{64, 64}});
    compare_narrow<machine::library_convolution_kernel<filters, linear, bf16, shape{18, 18, 8}>>(
        type_list<convolution<filters>>{}, shape{18, 18, 8}, {{8, 8}});
  }
  {
    const library_that fuses_nothing(true, false);
    compare_images();
    // A product that cannot add the bias would round twice.
    const std::vector<std::size_t> parameters{40 * 48, 48};
    const std::span<const std::size_t> sizes = parameters;
    const results by_library = results_of<of_dense::with_narrow<false, true>, float, bfloat16>(sizes, 40, 48, 130, 64);
    const results by_ours = results_of<of_dense::ours::with_narrow<false, true>, float, bfloat16>(sizes, 40, 48, 130, 64);
    CHECK(by_library.y == by_ours.y);
  }
  const library_that has_nothing(false, false);
  compare_dense();
  compare_images();
}
#endif

namespace {
template <class Network>
using trained = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>, bf16>;
/// For each group of the plan, 'n' if its output is narrow, otherwise '-'.
template <class Network, class Precision = bf16>
std::string narrow_outputs() {
  constexpr const auto& plan =
      plan_of<program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>, Precision>, cuda>;
  std::string all;
  for (int g = 0; g < plan.group_count; ++g) all += plan.groups[g].has_narrow_output ? 'n' : '-';
  return all;
}
using cnn = sequential<input<28, 28, 1>, conv2d<16, 3, relu>, max_pool2d<>, conv2d<20, 3, relu>, max_pool2d<>, flatten,
                       dense<32, relu>, dense<10, softmax>>;
using deep = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<40>, dense<33, relu>, dense<24, tanh_activation>,
                        dense<10, softmax>>;
}  // namespace

TEST_CASE("which outputs are narrow") {
  CHECK(narrow_outputs<cnn>() == "nnn-");
  CHECK(narrow_outputs<cnn, precision::tf32>() == "----");
  CHECK(narrow_outputs<cnn, precision::f32>() == "----");
  CHECK(narrow_outputs<deep>() == "nn---");  // 33 bfloat16 do not fill whole floats; the slope of tanh is not only 0 or 1
#if !defined(__CUDACC__)                     // cuDNN stores bfloat16, so batch_norm loses nothing
  using block = sequential<input<4, 4, 64>, conv2d<64, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
                           conv2d<64, 3, same_padding>, batch_norm<>, flatten, dense<10, softmax>>;
  CHECK(narrow_outputs<block>() == "nn---");  // the second convolution adds its bias to what the library has rounded
#endif
  // Dropout does not round, and the first of these layers has two readers.
  CHECK(narrow_outputs<sequential<input<8>, dense<8, relu>, dropout<0.5_r>, dense<10, softmax>>>() == "---");
  CHECK(narrow_outputs<sequential<input<8>, dense<8, relu>, add<dense<8, relu>, dense<8>>, dense<10, softmax>>>() == "-----");
}

TEST_CASE_TEMPLATE("a network has the bits of the same network with arrays of floats", Network, cnn, deep) {
  have_devices(2);
  if (machine::device_count() < 2) return;
  const auto trained_with = [](auto strategy) {
    trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(3), bf16{}};
    training_history all = model.fit(data::synthetic_digits(70, 1) | data::batch<40>, epochs(2), verbosity::off);
    const auto w = model.parameters();
    return std::pair{all["loss"], std::vector<float>(w.begin(), w.end())};
  };
  const auto narrow = trained_with(one_device{gpu(0), {.leaves = 4}});
  // Layers that are divided among GPUs send each other floats.
  CHECK(narrow == trained_with(gpu_pipeline<balanced<2>, micro_batches<4>>{gpus(2), {.leaves = 4}}));
}

#if !defined(__CUDACC__)
TEST_CASE("check_numerics finds what is not finite in narrow arrays") {
  using checked = sequential<input<6>, dense<8, relu>, dense<4, relu>, dense<3, softmax>>;
  const auto complaint = [](float of_first, float of_second) {
    have_devices(1);
    trainer model{checked{}, sgd{}, sparse_categorical_crossentropy{}, one_device{gpu(0), {.leaves = 4}}, seed(1), bf16{}};
    std::vector<float> all(model.parameters().size(), 0.25f);
    const auto& slots = layout_of<typename decltype(model)::program_type::items>.slots;
    all[std::size_t(slots[0].offset) + 3] = of_first, all[std::size_t(slots[2].offset) + 1] = of_second;
    model.set_parameters(all);
    const std::vector<float> x(6 * 24, 0.5f);
    const std::vector<std::int32_t> y(24);
    return error_of([&] {
      model.fit(data::from_tensor_slices(data::array<float, shape{6}>(x), y) | data::batch<24>, verbosity::off, check_numerics{});
    });
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::string begin = "check_numerics: epoch 1, update 1: the output of ";
  CHECK(complaint(infinity, 1) == begin +
                                      "dense (affine + relu) is inf at sample 0 of the batch, element 3 of (8,); "
                                      "not finite before this step: dense/kernel");
  CHECK(complaint(1, infinity) == begin +
                                      "dense_1 (affine + relu) is inf at sample 0 of the batch, element 1 of (4,); "
                                      "not finite before this step: dense_1/kernel");
}

TEST_CASE("a step needs less memory, and moves fewer bytes") {
  using exact = program<cnn, sparse_categorical_crossentropy<>, adam, type_list<accuracy>, precision::tf32>;
  constexpr int count = 64;
  constexpr long least = least_bytes_of_step<trained<cnn>, cuda>(count, 1, 2);
  static_assert(plan_of<trained<cnn>, cuda>.passing < plan_of<exact, cuda>.passing * 6 / 10);
  static_assert(least < least_bytes_of_step<exact, cuda>(count, 1, 2) * 7 / 10);
  have_devices(1);
  machine::count_bytes();
  const std::vector<float> x(count * 784, 0.5f);
  const std::vector<std::int32_t> y(count);
  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{gpu(0), {.leaves = 1}}, bf16{}};
  const samples<float> batch{x.data(), y.data(), count};
  model.train_step(batch);
  machine::take_counts(0);
  model.train_step(batch);
  const machine::work_counts counts = machine::take_counts(0);
  const long bytes = counts.bytes_read + counts.bytes_written;
  CAPTURE(bytes);
  CAPTURE(least);
  CHECK(bytes > least * 8 / 10);
  CHECK(bytes < least * 12 / 10);
}
#endif

TEST_CASE("convolutions of large leaves, which keep images: the same bits on 1, 2 and 4 devices, and about the loss of the CPU") {
  using net = sequential<input<12, 12, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten,
                         dense<3, softmax>>;
  constexpr std::size_t count = 300;  // the second batch has leaves with fewer samples, and one without
  std::vector<float> x(count * 144);
  std::vector<std::int32_t> y(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::abs(number(3, i)));
  for (std::size_t n = 0; n < count; ++n) {
    y[n] = std::int32_t(n % 3);
    for (std::size_t i = 0; i < 48; ++i) x[n * 144 + n % 3 * 48 + i] += 0.5f;
  }
  struct outcome {
    std::vector<float> weights;
    double loss;
    bool operator==(const outcome&) const = default;
  };
  const auto trained = [&](const auto& strategy, const auto& precision) {
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, strategy, precision, seed(3)};
    const double loss = model.fit(x, y, batch_size(256), epochs(2), verbosity::off)["loss"].back();
    const auto all = model.parameters();
    return outcome{{all.begin(), all.end()}, loss};
  };
  have_devices(1);
  const outcome one = trained(one_device{gpu(0), {.leaves = 4}}, bf16{});
  CHECK(one == trained(one_device{gpu(0), {.leaves = 4, .graphs = false}}, bf16{}));
  for (const int devices : {2, 4}) {
    have_devices(devices, std::uint64_t(devices));
    CHECK(one == trained(mirrored{gpus(), {.leaves = 4}}, bf16{}));
  }
  const double on_the_cpu = trained(one_device{{.threads = 1, .leaves = 4}}, precision::f32{}).loss;
  CHECK(std::abs(one.loss - on_the_cpu) < 0.01 * on_the_cpu);
}
