// What interop/test_xla_training.py --all compiles with optimization and runs: networks that compute for minutes, and in double
// where float cannot show that two ways to add up train the same. Arguments: names of networks. A line for each number of
// replicas.
#include <initializer_list>
#include <random>
#include <strata/strata.hpp>
#include <strata/xla/xla.hpp>
#include <string_view>
#include <vector>

#include "../../bench/networks/architectures.hpp"
#include "../interop/xla_training.hpp"

using namespace strata;
using namespace strata::core;

namespace {

using mlp = sequential<input<28, 28, 1>, flatten, dense<128, relu>, dropout<0.2_r>, dense<64, elu<>>, dense<10, softmax>>;

// Between them, every layer that strata has.
using every_layer =
    sequential<input<12, 12, 3>, normalization, zero_padding2d<1>, conv2d<4, 3, relu, kernel_regularizer<l2<0.01_r>>>,
               batch_norm<>, max_pool2d<2>, residual<conv2d<4, 3, same_padding, gelu>, batch_norm<no_scale>>, dropout<0.3_r>,
               concat<branch<conv2d<2, 1, silu>>, branch<average_pool2d<3, stride<1>, same_padding>>, branch<>>, up_sampling2d<2>,
               conv2d_transpose<3, 2, stride<2>>, multiply<branch<>, branch<conv2d<3, 1, sigmoid>>>, layer_norm<>,
               maximum<branch<>, branch<conv2d<3, 3, same_padding, channel_groups<3>>>>, add<branch<>, branch<conv2d<3, 1>>>,
               subtract<branch<>, branch<conv2d<3, 1>>>, average<branch<>, branch<conv2d<3, 1>>>, activation<softplus>,
               concat<branch<global_average_pool2d>, branch<global_max_pool2d>>, frozen<dense<8>>,
               dense<8, elu<>, bias_regularizer<l1<0.01_r>>>, reshape<4, 2>, flatten, dense<5, softmax>>;
using every_layer_of_words = sequential<input<6>, embedding<7, 4>, dropout<0.2_r>, layer_norm<>,
                                        concat<branch<global_max_pool1d>, branch<global_average_pool1d>>, dense<2, softmax>>;

/// Seven batches of random numbers with labels.
struct labelled_numbers {
  std::vector<double> x;
  std::vector<std::int32_t> y;
  samples<double> rows;

  /// `values`: 0 for any numbers, otherwise whole numbers below it.
  labelled_numbers(int batch, int features, int classes, int values = 0) {
    std::mt19937 random(3);
    const auto below = [&](int end) { return int(random() % unsigned(end)); };
    for (int i = 0; i < 7 * batch; ++i) {
      y.push_back(below(classes));
      // Each class has places of its own with larger numbers, so that there is something to learn.
      for (int k = 0; k < features; ++k)
        x.push_back(values ? k == 0 ? y.back() : below(values) : (below(2001) - 1000) / 1000.0 + (k % classes == y.back()) / 2.0);
    }
    rows = samples<double>(x.data(), y.data(), 7 * batch);
  }
};

template <class Network>
void compare(std::string_view wanted, const char* name, const labelled_numbers& data, const auto& optimizer, int batch,
             std::initializer_list<int> replicas) {
  if (wanted != name) return;
  constexpr int steps = 100;
  const auto train = [&](const auto& strategy) {
    return xla_training::trained<Network, precision::f64>(data.rows, optimizer, strategy, steps, batch);
  };
  const xla_training::outcome native = train(one_device{});
  for (const int r : replicas) xla_training::tell(name, r, train(xla{.replicas = r}), native);
}

}  // namespace

int main(int count, char** arguments) {
  const labelled_numbers digits(64, 784, 10), images(32, 432, 5), words(32, 6, 2, 7), photos(8, 3072, 10);
  for (int i = 1; i < count; ++i) {
    const std::string_view wanted = arguments[i];
    compare<mlp>(wanted, "mlp", digits, adam{}, 64, {1, 2, 4, 8});
    compare<bench::cnn>(wanted, "cnn", digits, adam{}, 64, {1, 2, 4, 8});
    compare<every_layer>(wanted, "every-layer", images, adam{.weight_decay = 0.01, .global_clipnorm = 0.5}, 32, {1, 2, 4, 8});
    compare<every_layer_of_words>(wanted, "every-layer-of-words", words, adam{}, 32, {1, 2, 4, 8});
    compare<bench::resnet20>(wanted, "resnet20", photos, sgd{.learning_rate = 0.01, .momentum = 0.9}, 8, {1, 2, 4, 8});
  }
}
