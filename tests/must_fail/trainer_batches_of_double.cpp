// error: data_mismatch<.*the_network_computes_in<float>.*the_batches_hold<double>.*because<.*leave_out_double_in_batch>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32, double>, epochs(1));
#endif
}
