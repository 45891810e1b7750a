// error: wrong_argument<.*vector.*because<.*x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const std::vector<float> x(80);
#else
  const std::vector<std::vector<float>> x(10, std::vector<float>(8));
#endif
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, epochs(1));
}
