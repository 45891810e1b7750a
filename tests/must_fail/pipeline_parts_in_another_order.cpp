// error: wrong_argument<.*micro_batches<4>, .*balanced<2>.*because<.*a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<4>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<micro_batches<4>, balanced<2>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
