// error: the function of data::map takes x, or x and y of samples with labels, or an element: write .auto x. or
// whole program
#include <strata/data/views/map.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::map([](auto x, int y) { return std::pair(x, y); }) | data::batch<32>,
            epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::map([](std::vector<float> x) { return x; }) | data::batch<32>, epochs(1));
#endif
}
