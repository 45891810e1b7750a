// The training whose pictures in TensorBoard the documentation shows: training_for_pictures FOLDER.
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <strata/callbacks/reduce_lr_on_plateau.hpp>
#include <strata/callbacks/tensor_board.hpp>
#include <strata/data.hpp>
#include <strata/strata.hpp>
#include <vector>
using namespace strata;

int main(int count, char** arguments) try {
  const std::filesystem::path folder = count > 1 ? arguments[1] : "logs";
  using net = sequential<input<28, 28, 1>, conv2d<8, 5, relu>, max_pool2d<2>, flatten, dropout<0.3_r>, dense<32, relu>,
                         dense<10, softmax>>;
  trainer model{net{}, adam{.learning_rate = 2e-3}, sparse_categorical_crossentropy{}, accuracy{}};
  const auto train = data::synthetic_digits(4000, 1) | data::random_rotation(0.05, {.seed = 1}) |
                     data::shuffle(4000, {.seed = 2}) | data::batch<64>;
  const auto test = data::synthetic_digits(1000, 2) | data::batch<100>;
  model.fit(train, validation(test), epochs(12), verbosity::off, reduce_lr_on_plateau{{.factor = 0.5, .patience = 2}},
            tensor_board{folder, {.histogram_freq = 1, .write_images = true, .update_every_batches = 10}});

  event_file pictures(folder / "train");
  for (const auto& batch : data::synthetic_digits(12, 3) | data::batch<12>) {
    std::vector<std::uint8_t> gray;
    for (int k = 0; k < batch.count * 28 * 28; ++k) gray.push_back(std::uint8_t(batch.x()[k] * 255));
    pictures.image("digits", gray, 28, 28, 1, 0);
  }
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
