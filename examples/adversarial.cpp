// Adversarial examples: images that are changed so little that people still read them, but the network does not. Each pixel
// moves by the same amount in the direction of the sign of the gradient of the loss (the fast gradient sign method, Goodfellow
// et al. 2015).
// takes: 3 s on two cores
#include <algorithm>
#include <iostream>
#include <strata/strata.hpp>
#include <strata/train/input_gradients.hpp>
#include <vector>
using namespace strata;

using cnn = sequential<input<28, 28, 1>, conv2d<16, 3, relu>, max_pool2d<2>, conv2d<32, 3, relu>, max_pool2d<2>, flatten,
                       dense<10, softmax>>;

int main() try {
  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  model.fit(data::synthetic_digits(5'000, 1) | data::shuffle(5'000) | data::batch<64>, epochs(2));

  std::vector<float> images;
  std::vector<int> digits;
  for (const auto& batch : data::synthetic_digits(1'000, 2) | data::batch<1'000>) {
    images.assign(batch.x(), batch.x() + 1'000 * 784);
    digits.assign(batch.labels(), batch.labels() + 1'000);
  }
  const auto gradients = model.gradients(images, digits);
  double last = 1;
  for (const float amount : {0.0f, 0.05f, 0.1f, 0.2f}) {
    std::vector<float> changed = images;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const float slope = gradients.values[i];
      changed[i] = std::clamp(changed[i] + amount * float((slope > 0) - (slope < 0)), 0.0f, 1.0f);
    }
    last = model.evaluate(changed, digits)["accuracy"];
    std::cout << "each pixel moved by " << amount << ": accuracy " << last << '\n';
  }
  return last < 0.5 ? 0 : 1;
} catch (const strata::strata_error& e) {
  std::cerr << "adversarial: " << e.what() << '\n';
  return 1;
}
