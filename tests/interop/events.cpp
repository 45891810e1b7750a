// needs: protozero
// Trains with tensor_board, for test_tensorboard.py: events FOLDER. Prints what TensorBoard has to find: tag, step, value.
#include <cstdio>
#include <exception>
#include <iostream>
#include <strata/callbacks/tensor_board.hpp>
#include <strata/strata.hpp>
using namespace strata;

namespace {
using net = sequential<input<28, 28, 1>, flatten, dense<8, relu>, dense<10, softmax>>;

struct print_batches {
  void on_batch_end(training_state& s) { std::printf("batch_loss %ld %.17g\n", s.step, double(float(s.loss))); }
};
}  // namespace

int main(int, char** argv) try {
  trainer model{net{}, adam{.learning_rate = 1e-2}, sparse_categorical_crossentropy{}, accuracy{}};
  const auto digits = data::synthetic_digits(200, 1) | data::batch<50>;
  const history past =
      model.fit(digits, epochs(3), validation(digits), verbosity::off, print_batches{},
                tensor_board{argv[1], {.histogram_freq = 2, .write_steps_per_second = true, .update_every_batches = 1}});
  for (std::size_t e = 0; e < past.size(); ++e)
    for (const auto& [name, value] : past.all()[e]) std::printf("%s %zu %.17g\n", name.c_str(), e, double(float(value)));
  for (const float w : model.parameters().first(3)) std::printf("weight 0 %.17g\n", double(w));
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
