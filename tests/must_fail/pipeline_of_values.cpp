// error: wrong_argument<.*balanced<2>, .*micro_batches<4>.*because<.*the_parts_of_a_pipeline_are_template_arguments_in_angle_brackets>
// whole program
#include <strata/distribute/pipeline.hpp>

#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<4>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline{balanced<2>{}, micro_batches<4>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
