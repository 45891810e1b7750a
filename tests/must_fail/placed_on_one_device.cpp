// error: missing_device<.*device<1>.*because<.*the_strategy_has_one_device_use_placed_or_leave_out_on>
// whole program
#include <strata/distribute/placed.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, on<device<0>, dense<10, softmax>>>;
#else
using net = sequential<input<28, 28, 1>, flatten, on<device<1>, dense<10, softmax>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
