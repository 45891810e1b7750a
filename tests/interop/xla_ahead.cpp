// The other half of test_xla_tpu.py: compiles training steps for a topology of libtpu, without a TPU. arguments: the topology,
// then names of networks. A line for each network and number of replicas: bytes of the executable, and XLA's estimates of
// operations, bytes and seconds.
#include <cstdio>
#include <cstdlib>
#include <strata/strata.hpp>
#include <strata/xla/compile_step.hpp>
#include <string_view>

#include "../../bench/networks/architectures.hpp"
#include "xla_test_networks.hpp"

using namespace strata;

namespace {

using mlp = sequential<input<28, 28, 1>, flatten, dense<128, relu>, dropout<0.2_r>, dense<10, softmax>>;

template <class Network, class Loss = sparse_categorical_crossentropy<>>
void compile(std::string_view wanted, const char* name, const auto& optimizer, const auto& precision, const pjrt::topology& on) {
  if (wanted != name) return;
  trainer model{Network{}, optimizer, Loss{}, accuracy{}, precision};
  for (int replicas : {1, on.devices()}) {
    pjrt::compiled_ahead step = compile_step(model, on, 64 * replicas - 1, replicas);
    std::printf("%s %d %zu %g %g %g\n", name, replicas, step.serialized.size(), step.cost["flops"], step.cost["bytes accessed"],
                step.cost["optimal_seconds"]);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  const pjrt::topology on(pjrt::plugin::load(pjrt::find_plugin("tpu")), arguments[1]);
  for (int i = 2; i < count; ++i) {
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
  std::_Exit(0);  // libtpu's threads do not end
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  std::fflush(nullptr);
  std::_Exit(1);
}
