// pipeline.

using namespace strata;

// case: pipeline_among_parts_in_another_order
// error: incomplete_model<.*balanced<2>.*because<.*communicators_have_rank_and_size>
// whole program
#include <strata/distribute/among.hpp>

#include <strata/communicators/in_process.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                pipeline_among<in_process, balanced<2>>{in_process::group(2)[0]}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                pipeline_among<balanced<2>, in_process>{in_process::group(2)[0]}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: pipeline_batch
// error: batch_cannot_be_cut<.*samples_in_a_batch<32>.*micro_batches<5>.*because<.*the_number_of_micro_batches_divides_the_batch>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

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

// case: pipeline_fits_in
// error: wrong_argument<.*fits_in<1024>.*because<.*fits_in_does_not_go_with_layers_at_several_places_which_keep_their_micro_batches>
// whole program
#include <strata/distribute/pipeline.hpp>

#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

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

// case: pipeline_interleaved_stages
// error: wrong_schedule<.*interleaved<2>.*with_stages<1>.*because<.*the_stages_of_a_place_divide_the_number_of_stages>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

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

// case: pipeline_layers_left_over
// error: wrong_cut<.*stages<1, 1>.*which_has_layers<3>.*because<.*the_layers_of_all_stages_add_up_to_those_of_the_network_without_input>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

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

// case: pipeline_more_stages_than_layers
// error: wrong_cut<.*balanced<3>.*which_has_layers<2>.*because<.*there_are_more_stages_than_layers_that_compute>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

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

// case: pipeline_parts_in_another_order
// error: wrong_argument<.*micro_batches<4>, .*balanced<2>.*because<.*a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<4>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<micro_batches<4>, balanced<2>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: pipeline_stage_without_layers
// error: wrong_cut<.*stages<3, 0>.*which_has_layers<3>.*because<.*each_stage_needs_a_layer_that_computes>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using parts = pipeline<stages<2, 1>>;
#else
using parts = pipeline<stages<3, 0>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parts{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: pipeline_without_micro_batches
// error: wrong_argument<.*micro_batches<0>.*because<.*a_pipeline_has_at_least_one_stage_one_micro_batch_and_one_stage_at_a_place>
// whole program
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<1>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<0>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
