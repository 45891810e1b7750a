// error: wrong_option<.*at_index<2>.*by_layer<.*dense<10.*because<.*regularizers_are_l1_l2_or_l1_l2>
// whole program
#include <strata/strata.hpp>

using namespace strata;
struct of_mine {};
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax, kernel_regularizer<of_mine>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
