// error: nothing_to_adapt<.*because<.*adapt_needs_a_normalization_after_input>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, normalization, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, flatten, dense<16, relu>, normalization, dense<10, softmax>>;
#endif
void train() {
  const auto digits = data::synthetic_digits(64, 1);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.adapt(digits | data::batch<32>);
  model.fit(digits | data::batch<32>, epochs(1));
}
