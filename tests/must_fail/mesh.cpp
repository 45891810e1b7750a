// mesh.

using namespace strata;
using namespace strata::core;

// case: mesh_among_without_communicator
// error: incomplete_model<.*data_parallel<1>.*because<.*communicators_have_rank_and_size>
// whole program
#include <strata/distribute/among.hpp>

#include <strata/communicators/in_process.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using inner = tensor_parallel<2, layout_map<rule<"dense", by_columns>>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                device_mesh_among<in_process, data_parallel<1>, inner>{in_process::group(2)[0]}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                device_mesh_among<data_parallel<1>, inner>{in_process::group(2)[0]}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: mesh_batch
// error: batch_cannot_be_cut<.*samples_in_a_batch<68>.*groups_of_micro_batches<2, 4>.*because<.*the_number_of_groups_times_that_of_micro_batches_divides_the_batch>
// whole program
#include <strata/distribute/device_mesh.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using parts = device_mesh<data_parallel<2>, pipeline<balanced<2>, micro_batches<4>>,
                          tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>>;
#ifdef TWIN
constexpr int size = 64;
#else
constexpr int size = 68;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parts{}};
  model.fit(data::synthetic_digits(136, 1) | data::batch<size>, epochs(1));
}

// case: mesh_of_two_backends
// error: wrong_argument<.*unfused<.*because<.*the_pipeline_and_the_tensor_parallel_of_a_mesh_have_the_same_backend>
// whole program
#include <strata/distribute/device_mesh.hpp>
#include <strata/kernel/unfused.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using halves = pipeline<balanced<2>, micro_batches<8>, gpipe>;
using by_mesh = device_mesh<data_parallel<1>, halves, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>>;
#else
using halves = pipeline<balanced<2>, micro_batches<8>, gpipe, unfused<cpu>>;
using by_mesh = device_mesh<data_parallel<1>, halves, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>>;
#endif

void check() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, by_mesh{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: mesh_parts_in_another_order
// error: wrong_argument<.*tensor_ranks<1, 2.*data_parallel<2>.*because<.*a_mesh_has_data_parallel_and_then_pipeline_or_tensor_parallel_or_both_in_this_order>
// whole program
#include <strata/distribute/device_mesh.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using map = layout_map<rule<"dense", by_columns>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, device_mesh<data_parallel<2>, tensor_parallel<2, map>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, device_mesh<tensor_parallel<2, map>, data_parallel<2>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: mesh_tensor_parallel_before_pipeline
// error: wrong_argument<.*tensor_ranks<1, 2.*pipelines<.*because<.*a_mesh_has_data_parallel_and_then_pipeline_or_tensor_parallel_or_both_in_this_order>
// whole program
#include <strata/distribute/device_mesh.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using by_mesh = device_mesh<data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>>;
#else
using by_mesh = device_mesh<data_parallel<2>, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>, pipeline<balanced<2>>>;
#endif

void check() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, by_mesh{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
