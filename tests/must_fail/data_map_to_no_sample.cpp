// error: elements before data::batch are samples: an array of numbers, std::array or tensor, or a pair of it and a label
// whole program
#include <strata/data/views/map.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<2>, dense<10, softmax>>;
struct point {
  float x, y;
};
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  const auto digits = data::synthetic_digits(64, 1);
#ifdef TWIN
  model.fit(digits | data::map([](const auto&) { return std::pair(std::array<float, 2>{}, 1); }) | data::batch<32>);
#else
  model.fit(digits | data::map([](const auto&) { return point{}; }) | data::batch<32>);
#endif
}
