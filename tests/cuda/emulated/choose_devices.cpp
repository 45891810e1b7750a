// Which devices compute: auto_device chooses GPUs where there are some, else the CPU; a predictor can use a GPU.
// needs: emulated_cuda
// flags: -O0
#include "compare.hpp"

#include <sstream>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <strata/train/predictor.hpp>
#include <string>

#include "unit/error_of.hpp"

using namespace strata;
using namespace strata::test;

namespace {
struct outcome {
  std::vector<float> weights;
  double loss;
  friend bool operator==(const outcome&, const outcome&) = default;
};

outcome trained(const auto& strategy) {
  std::vector<float> x(60 * 4);
  std::vector<std::int32_t> y(60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(number(1, i));
  for (std::size_t n = 0; n < y.size(); ++n) y[n] = std::int32_t(n % 3);
  trainer model{sequential<input<4>, dense<8, relu>, dense<3, softmax>>{},
                adam{},
                sparse_categorical_crossentropy{},
                accuracy{},
                strategy,
                seed(3)};
  model.set_trainable("dense", false);
  const training_history past = model.fit(x, y, epochs(2), batch_size(20), verbosity::off);
  return {{model.parameters().begin(), model.parameters().end()}, past["loss"].back()};
}
/// How often the host has waited for the first emulated device since the last call.
long take_waits() {
#if defined(__CUDACC__)
  return 0;
#else
  return machine::take_counts(0).waits;
#endif
}
}  // namespace

TEST_CASE("auto_device trains as mirrored{gpus()} where there are GPUs, as one_device{} elsewhere, and says which") {
  std::string said;
  const auto_device chooses{.options = {.leaves = 4}, .on_choice = [&](const std::string& what) { said += what + '\n'; }};
  have_devices(2);
  take_waits();
  const outcome on_gpus = trained(chooses);
  const long waits = take_waits();
  CHECK(said == (machine::device_count() > 1 ? detail::text_of({"auto_device: trains on ", machine::device_count(), " GPUs\n"})
                                             : "auto_device: trains on gpu(0)\n"));
  CHECK(on_gpus == trained(mirrored{gpus(), {.leaves = 4}}));
  CHECK(waits == take_waits());
#if !defined(__CUDACC__)
  said.clear();
  have_devices(0);
  CHECK(trained(chooses) == trained(one_device{{.leaves = 4}}));
  CHECK(said == "auto_device: trains on the CPU: nvcc has not compiled this program, and it has no emulated GPU\n");
#endif
}

TEST_CASE("one GPU with options; more GPUs than there are, by count or by index") {
  have_devices(2);
  CHECK(trained(one_device{gpu(0), {.leaves = 4}}) == trained(mirrored{gpus({0}), {.leaves = 4, .graphs = false}}));
  CHECK(one_device{gpu(1), {.leaves = 4}}.options.devices == std::vector<int>{1});
#if !defined(__CUDACC__)
  CHECK(error_of([] { trained(mirrored{gpus(5)}); }) == "gpus(5): this machine has 2");
  CHECK(error_of([] { trained(mirrored{gpus({0, 7})}); }) == "gpu(7): this machine has 2, from gpu(0) to gpu(1)");
#endif
}

TEST_CASE("a plan on a GPU names the precision, and says that the workspace is that of all samples") {
  have_devices(1);
  const auto printed = [](auto network) {
    std::ostringstream out;
    print_plan(trainer{network, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}, precision::mixed_bf16{}}, out);
    return out.str();
  };
  const std::string one = printed(sequential<input<4>, dense<8, relu>, dense<3, softmax>>{});
  CAPTURE(one);
  CHECK(one.starts_with("plan on cuda in mixed_bf16: "));
  CHECK(one.find(" without reuse), for all samples that a device has\n") != std::string::npos);
  const std::string several = printed(sequential<input<4>, dense<8>, batch_norm<>, dense<3, softmax>>{});
  CAPTURE(several);
  CHECK(several.find(" per sample, with a * (") != std::string::npos);
  CHECK(several.find(" without reuse), for all samples that a device has\n") != std::string::npos);
}

TEST_CASE("a predictor on a GPU: the predictions of a trainer") {
  have_devices(2);
  using net = sequential<input<4>, dense<8, relu>, dense<3, softmax>>;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}, seed(3)};
  std::vector<float> x(700 * 4);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(number(2, i));
  const std::vector<float> expected = model.predict(x).values;
  const predictor on_gpu{net{}, model.parameters(), gpu(machine::device_count() - 1)};
  const std::vector<float> all = on_gpu.predict(x).values;
  CHECK(difference(all, std::vector<double>(expected.begin(), expected.end())) < 1e-5);
  CHECK(predictor{net{}, model, gpu(0)}.predict(x).values == all);
  CHECK(on_gpu.predict(std::span<const float>(x).first(8)).values == std::vector<float>(all.begin(), all.begin() + 6));
  const predictor in_double{net{}, std::vector<double>(model.parameters().begin(), model.parameters().end()), gpu(0),
                            precision::f64{}};
  const std::vector<double> xs(x.begin(), x.end());
  CHECK(difference(all, in_double.predict(xs).values) < 1e-5);
  const predictor other_order{net{}, model.parameters(), precision::mixed_bf16{}, gpu(0)};
  CHECK(difference(other_order.predict(x).values, std::vector<double>(all.begin(), all.end())) < 1e-1);
  CHECK(error_of([&] { predictor{net{}, model.parameters(), gpu(machine::device_count())}; }).find("this machine has") !=
        std::string::npos);
  CHECK(difference(predictor{net{}, model.parameters()}.predict(x).values, std::vector<double>(all.begin(), all.end())) < 1e-5);
}
