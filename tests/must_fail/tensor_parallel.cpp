// tensor_parallel.

using namespace strata;
using namespace strata::core;

// case: process_memory_of_tensor_parallel
// error: wrong_argument<.*tensor_ranks<1, 2, .*because<.*process_memory_is_known_of_zero_and_of_strategies_over_processes_such_as_multi_worker_pipeline>
#include <strata/distribute/process_memory.hpp>
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using training = program<net, sparse_categorical_crossentropy<>, adam, type_list<>>;
using halves = layout_map<rule<"dense", by_columns>>;

#ifdef TWIN
static_assert(process_memory_of<training, zero<2>>({.batch = 64, .processes = 4}).peak() > 0);
#else
static_assert(process_memory_of<training, tensor_parallel<2, halves>>({.batch = 64}).peak() >= 0);
#endif

// case: tensor_parallel_adafactor
// error: optimizer_cannot_be_divided<.*adafactor.*because<.*it_keeps_means_of_whole_rows_and_columns_which_no_rank_has>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using by = lamb;
#else
using by = adafactor;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, by{},
                sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_classes_layer
// error: layer_cannot_be_divided<.*by_layer<.*dense<64.*because<.*by_classes_divides_the_dense_layer_that_ends_a_network_alone_or_with_softmax>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using map = layout_map<rule<"dense_1", by_classes>>;
#else
using map = layout_map<rule<"dense", by_classes>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, accuracy{}, tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_classes_loss
// error: loss_cannot_be_divided<.*mean_squared_error.*because<.*by_classes_the_loss_is_a_categorical_crossentropy_with_from_logits_if_the_network_ends_without_softmax>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using loss = categorical_crossentropy<>;
#else
using loss = mean_squared_error;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{}, loss{},
                tensor_parallel<2, layout_map<rule<"dense_1", by_classes>>>{}};
  model.fit(data::synthetic_digits(64, 1) | data::one_hot<10> | data::batch<32>, epochs(1));
}

// case: tensor_parallel_classes_metric
// error: metric_cannot_be_divided<.*f1_score<.*because<.*by_classes_a_metric_has_measure_place_as_accuracy_and_top_k_categorical_accuracy_do>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using map = layout_map<rule<"dense_1", by_columns>>;
#else
using map = layout_map<rule<"dense_1", by_classes>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{},
                adam{},
                sparse_categorical_crossentropy{},
                accuracy{},
                f1_score<>{},
                tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_fits_in
// error: wrong_argument<.*fits_in<1024.*because<.*fits_in_does_not_go_with_divided_layers_set_a_smaller_micro_batch>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using map = layout_map<rule<"dense", by_columns>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, map>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, map, fits_in<1_KiB>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_layer
// error: layer_cannot_be_divided<.*by_layer<.*layer_norm.*because<.*only_dense_conv2d_without_groups_and_embedding_can_be_divided>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using map = layout_map<rule<"dense", by_columns>>;
#else
using map = layout_map<rule<"dense", by_columns>, rule<"layer_norm*", by_columns>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, layer_norm<>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<4, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_rows
// error: layer_cannot_be_divided<.*by_layer<.*dense<10.*among_ranks<3>.*because<.*by_rows_the_number_of_ranks_divides_the_number_of_inputs>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using map = layout_map<rule_for<dense<66, relu>, by_columns>, rule<"dense_1", by_rows>>;
using hidden = dense<66, relu>;
#else
using map = layout_map<rule<"dense_1", by_rows>>;
using hidden = dense<64, relu>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, hidden, dense<10, softmax>>{}, adam{}, sparse_categorical_crossentropy{},
                tensor_parallel<3, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_rows_of_conv2d
// error: layer_cannot_be_divided<.*by_layer<.*conv2d<16.*because<.*only_dense_and_embedding_can_be_divided_by_rows>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using map = layout_map<rule<"conv2d", by_columns>>;
#else
using map = layout_map<rule<"conv2d", by_rows>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, conv2d<16, 3, stride<2>, relu>, flatten, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_rule_by_a_number
// error: wrong_argument<.*rule<.*int>.*because<.*a_layer_is_divided_by_columns_by_rows_or_by_classes>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", int>>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_rule_without_layer
// error: rule_decides_nothing<.*at_rule<1>.*by_columns>.*because<.*no_layer_has_such_a_name_or_type_or_an_earlier_rule_matches_it>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using map = layout_map<rule<"dense_1", by_columns>, rule<"dense*", by_columns>>;
#else
using map = layout_map<rule<"dense_*", by_columns>, rule<"dense_1", by_columns>>;
#endif

void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_units
// error: layer_cannot_be_divided<.*by_layer<.*dense<10.*among_ranks<4>.*because<.*by_columns_the_number_of_ranks_divides_the_units_filters_or_width>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using map = layout_map<rule<"dense", by_columns>>;
#else
using map = layout_map<rule<"dense*", by_columns>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<4, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: tensor_parallel_without_layout_map
// error: wrong_argument<.*rule<.*by_columns>.*because<.*after_the_number_of_ranks_comes_a_layout_map_of_rules_such_as_rule_of_a_name_and_by_columns>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, rule<"dense", by_columns>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
