// error: batch_cannot_be_cut<.*samples_in_a_batch<32>.*micro_batches<5>.*because<.*the_number_of_micro_batches_divides_the_batch>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using parts = pipeline<balanced<2>, micro_batches<4>>;
#else
using parts = pipeline<balanced<2>, micro_batches<5>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parts{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
