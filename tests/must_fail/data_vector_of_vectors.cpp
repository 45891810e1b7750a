// error: data::from_tensor_slices takes a data::array, .*; of rows that are vectors, make one flat vector
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<4>, dense<10, softmax>>;
void train() {
  const std::vector<std::vector<float>> x;
  const std::vector<std::array<float, 4>> rows;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(rows, y) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#endif
}
