// error: wrong_argument<.*validation_split.*because<.*validation_split_goes_with_arrays_split_a_data_set_by_data_split_dataset>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(std::vector<float>(784 * 10), std::vector<int>(10), validation_split(0.2));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, validation_split(0.2));
#endif
}
