// The trainings whose pictures the documentation shows: training_for_pictures tensorboard FOLDER, and in a terminal
// training_for_pictures progress or profile.
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <strata/callbacks/profiler.hpp>
#include <strata/callbacks/reduce_lr_on_plateau.hpp>
#include <strata/callbacks/tensor_board.hpp>
#include <strata/data.hpp>
#include <strata/strata.hpp>
#include <string_view>
#include <vector>
using namespace strata;

namespace {
using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;

template <class... Options>
void fit_in_terminal(int for_epochs, Options... options) {
  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  const auto train = data::synthetic_digits(12000, 1) | data::batch<64>;
  const auto test = data::synthetic_digits(1000, 2) | data::batch<100>;
  model.fit(train, validation(test), epochs(for_epochs), options...);
}

void fit_for_tensorboard(const std::filesystem::path& folder) {
  using net = sequential<input<28, 28, 1>, conv2d<8, 5, relu>, max_pool2d<2>, flatten, dropout<0.3_r>, dense<32, relu>,
                         dense<10, softmax>>;
  trainer model{net{}, adam{.learning_rate = 2e-3}, sparse_categorical_crossentropy{}, accuracy{}};
  const auto train = data::synthetic_digits(4000, 1) | data::random_rotation(0.05, {.seed = 1}) |
                     data::shuffle(4000, {.seed = 2}) | data::batch<64>;
  const auto test = data::synthetic_digits(1000, 2) | data::batch<100>;
  model.fit(train, validation(test), epochs(12), verbosity::off, reduce_lr_on_plateau{.factor = 0.5, .patience = 2},
            tensor_board{folder, {.histogram_freq = 1, .write_grads = true, .write_images = true, .update_every_batches = 10}});

  event_file pictures(folder / "train");
  for (const auto& batch : data::synthetic_digits(12, 3) | data::batch<12>) {
    std::vector<std::uint8_t> gray;
    for (int k = 0; k < batch.count * 28 * 28; ++k) gray.push_back(std::uint8_t(batch.x()[k] * 255));
    pictures.image("digits", gray, 28, 28, 1, 0);
  }
}
}  // namespace

int main(int count, char** arguments) try {
  const std::string_view what = count > 1 ? arguments[1] : "progress";
  if (what == "tensorboard") fit_for_tensorboard(count > 2 ? arguments[2] : "logs");
  if (what == "progress") fit_in_terminal(4);
  if (what == "profile") fit_in_terminal(1, profiler{});
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
