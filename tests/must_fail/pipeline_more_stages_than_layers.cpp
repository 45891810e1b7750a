// error: wrong_cut<.*balanced<3>.*which_has_layers<2>.*because<.*there_are_more_stages_than_layers_that_compute>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using parts = pipeline<balanced<2>>;
#else
using parts = pipeline<balanced<3>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parts{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
