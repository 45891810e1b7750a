// error: wrong_argument<.*because<.*x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>
// whole program
#include <strata/strata.hpp>
#include <string>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.predict(std::vector<float>(8));
#else
  model.predict(std::vector<std::string>(8));
#endif
}
