// error: wrong_argument<.*micro_batches<0>.*because<.*a_pipeline_has_at_least_one_stage_one_micro_batch_and_one_stage_at_a_place>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<1>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<0>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
