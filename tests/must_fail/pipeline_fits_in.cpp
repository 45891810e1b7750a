// error: wrong_argument<.*fits_in<1024>.*because<.*fits_in_does_not_go_with_layers_at_several_places_which_keep_their_micro_batches>
// whole program
#include <strata/distribute/pipeline.hpp>

#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<4>, gpipe>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                pipeline<balanced<2>, micro_batches<4>, gpipe, fits_in<1_KiB>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
