// error: data_mismatch<.*the_network_takes<784>.*the_data_set_yields<28, 28, 1>.*because<.*begin_with_input_of_the_shape_of_the_data_then_flatten>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<784>, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
