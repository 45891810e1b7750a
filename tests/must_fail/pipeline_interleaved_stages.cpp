// error: wrong_schedule<.*interleaved<2>.*with_stages<1>.*because<.*the_stages_of_a_place_divide_the_number_of_stages>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using parts = pipeline<balanced<2>, micro_batches<8>, interleaved<2>>;
#else
using parts = pipeline<balanced<1>, micro_batches<8>, interleaved<2>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parts{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
