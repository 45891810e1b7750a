// error: shape_mismatch<.*at_index<1>.*by_layer<.*reshape<27, 28>.*receives<28, 28, 1>.*wants<756>.*because<.*reshape_must_keep_the_number_of_elements>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, reshape<14, 56>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, reshape<27, 28>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
