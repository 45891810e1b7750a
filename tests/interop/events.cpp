// needs: protozero
// Trains with tensor_board, for test_tensorboard.py: events FOLDER. Prints what TensorBoard has to find: tag, step, value.
#include <cstdio>
#include <exception>
#include <iostream>
#include <strata/callbacks/tensor_board.hpp>
#include <strata/network/parameter_views.hpp>
#include <strata/strata.hpp>
using namespace strata;

namespace {
using net = sequential<input<28, 28, 1>, conv2d<2, 5, relu, stride<3>>, flatten, dense<8, relu>, dense<10, softmax>>;

struct print_batches {
  void on_batch_end(training_state& s) { std::printf("batch_loss %ld %.17g\n", s.step, double(float(s.loss))); }
};
}  // namespace

int main(int, char** argv) try {
  trainer model{net{}, adam{.learning_rate = 1e-2}, sparse_categorical_crossentropy{}, accuracy{}};
  const auto digits = data::synthetic_digits(200, 1) | data::batch<50>;
  const training_history past = model.fit(digits, epochs(3), validation(digits), verbosity::off, print_batches{},
                                          tensor_board{argv[1],
                                                       {.histogram_freq = 2,
                                                        .write_grads = true,
                                                        .write_images = true,
                                                        .write_steps_per_second = true,
                                                        .update_every_batches = 1}});
  for (std::size_t e = 0; e < past.size(); ++e)
    for (const auto& [name, value] : past.all()[e]) std::printf("%s %zu %.17g\n", name.c_str(), e, double(float(value)));
  boost::hana::unpack(parameters_of_layer<net, 4>(model.parameters()), [](auto kernel, auto) {
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 10; ++column) std::printf("dense_1/kernel 0 %.17g\n", double(kernel(row, column)));
  });
  boost::hana::unpack(parameters_of_layer<net, 1>(model.parameters()), [](auto kernel, auto) {
    for (int filter = 0; filter < 2; ++filter)
      for (int place = 0; place < 25; ++place)
        std::printf("conv2d/kernel 0 %.17g\n", double(kernel(place / 5, place % 5, 0, filter)));
  });

  event_file pictures(std::filesystem::path(argv[1]) / "pictures");
  std::vector<std::uint8_t> red_and_blue;
  for (int i = 0; i < 2 * 200 * 300; ++i)
    red_and_blue.insert(red_and_blue.end(), {std::uint8_t(i % 251), 0, std::uint8_t(i / 300 % 256)});
  pictures.image("red_and_blue", red_and_blue, 200, 300, 3, 7);
  pictures.image("clear", std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}, 2, 1, 4, 8);
  pictures.flush();
  try {
    pictures.image("gray", std::vector<std::uint8_t>(9), 3, 4, 1, 0);
  } catch (const strata_error& e) {
    std::printf("refused 0 %d\n", std::string(e.what()) == "an image of 3 x 4 x 1 does not have 9 values");
  }
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
