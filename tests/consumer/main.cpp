// A program that uses strata and its dependencies: Hana, JSON, zlib and threads.
#include <cstdio>
#include <strata/network/parameter_views.hpp>
#include <strata/strata.hpp>
#include <strata/train/weights_file.hpp>
using namespace strata;

using net = sequential<input<28, 28, 1>, flatten, dense<16, relu>, dense<10, softmax>>;

int main() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  auto digits = data::synthetic_digits(256, 1) | data::batch<32>;
  const training_history past = model.fit(digits, epochs(3), verbosity::off);
  const auto kernel = parameters_of_layer<net, 2>(model.parameters())[boost::hana::size_c<0>];
  std::printf("loss %.3f, then %.3f; %g\n", past["loss"].front(), past["loss"].back(), double(kernel(300, 2)));
  return past["loss"].back() < past["loss"].front() ? 0 : 1;
}
