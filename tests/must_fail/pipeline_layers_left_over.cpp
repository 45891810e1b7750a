// error: wrong_cut<.*stages<1, 1>.*which_has_layers<3>.*because<.*the_layers_of_all_stages_add_up_to_those_of_the_network_without_input>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using parts = pipeline<stages<2, 1>>;
#else
using parts = pipeline<stages<1, 1>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parts{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
