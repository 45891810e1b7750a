// The program of README.md, with more digits and a file of weights: a network as a type, trained on rendered digits in seconds.
// takes: 3 s on two cores
#include <iostream>
#include <strata/strata.hpp>
#include <strata/train/weights_file.hpp>
using namespace strata;

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;

int main() try {
  auto train = data::synthetic_digits(10'000, 1), test = data::synthetic_digits(2'000, 2);
  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  std::cout << summary(model);
  model.fit(train | data::shuffle(10'000) | data::batch<64> | data::prefetch(2), epochs(3), validation(test | data::batch<64>));
  model.save_weights("digits.safetensors");
} catch (const strata::strata_error& e) {
  std::cerr << "quickstart: " << e.what() << '\n';
  return 1;
}
