// The other half of test_xla_tpu.py and test_xla_cuda.py: compiles training steps for devices that this machine does not have.
// Arguments: "tpu" and a topology of libtpu, or "cuda" and a file that describes a GPU, of which there are then 8; names of
// networks. Prints a line for each network and number of replicas: bytes of the executable, XLA's estimates of operations, bytes
// and seconds, and the processor seconds that compiling took.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <strata/strata.hpp>
#include <strata/xla/compile_step.hpp>
#include <string>
#include <string_view>

#include "../../bench/networks/architectures.hpp"
#include "xla_test_networks.hpp"

using namespace strata;

namespace {

using mlp = sequential<input<28, 28, 1>, flatten, dense<128, relu>, dropout<0.2_r>, dense<10, softmax>>;

struct target {
  std::string platform;
  pjrt::topology devices;
};

target target_of(const std::string& platform, const std::string& where) {
  const pjrt::plugin& plugin = pjrt::plugin::load(pjrt::find_plugin(platform == "tpu" ? "tpu" : ""));
  if (platform == "tpu") return {platform, {plugin, where}};
  std::ifstream file(where);
  const std::string description(std::istreambuf_iterator<char>(file), {});
  // Partitions of hosts, hosts, devices of a host.
  return {platform, {plugin, "", {{"topology", "1x1x8"}, {"target_config", description}}}};
}

template <class Network, class Loss = sparse_categorical_crossentropy<>>
void compile(std::string_view wanted, const char* name, const auto& optimizer, const auto& precision, const target& on) {
  if (wanted != name) return;
  trainer model{Network{}, optimizer, Loss{}, accuracy{}, precision};
  for (int replicas : {1, on.devices.devices()}) {
    const std::clock_t begin = std::clock();
    pjrt::compiled_ahead step = compile_step(model, on.devices, 64 * replicas - 1, replicas);
    std::printf("%s %d %zu %g %g %g %.1f\n", name, replicas, step.serialized.size(), step.cost["flops"],
                step.cost["bytes accessed"], step.cost["optimal_seconds"], double(std::clock() - begin) / CLOCKS_PER_SEC);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  const target on = target_of(arguments[1], arguments[2]);
  for (int i = 3; i < count; ++i) {
    compile<mlp>(arguments[i], "mlp", sgd{}, precision::f32{}, on);
    compile<mlp>(arguments[i], "mlp-bf16", adam{}, precision::mixed_bf16{}, on);
    compile<bench::cnn>(arguments[i], "cnn", adam{}, precision::f32{}, on);
    compile<bench::cnn>(arguments[i], "cnn-bf16", adam{}, precision::mixed_bf16{}, on);
    compile<bench::resnet20>(arguments[i], "resnet20", sgd{.momentum = 0.9}, precision::mixed_bf16{}, on);
    compile<bench::mobilenet>(arguments[i], "mobilenet", adam{}, precision::mixed_bf16{}, on);
    compile<xla_networks::images>(arguments[i], "images", adam{.weight_decay = 0.01, .global_clipnorm = 0.5}, precision::f32{},
                                  on);
    compile<xla_networks::words, binary_crossentropy<>>(arguments[i], "words", lamb{}, precision::f32{}, on);
  }
  std::fflush(nullptr);
  std::_Exit(0);  // threads of plugins do not end
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  std::fflush(nullptr);
  std::_Exit(1);
}
