// placed.
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: on_a_negative_device
// error: shape_mismatch<.*at_index<2>.*by_layer<.*on_device<-1.*because<.*on_device_takes_the_number_of_a_device_from_0_and_layers>
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, on_device<1, dense<64, relu>>, dense<10>>;
#else
using net = sequential<input<28, 28, 1>, flatten, on_device<-1, dense<64, relu>>, dense<10>>;
#endif
net n;

// case: placed_batch_norm
// error: cannot_be_split<.*by_layer<.*batch_norm<>.*because<.*batch_norm_needs_the_whole_batch_at_once_use_layer_norm_or_freeze_it>
// whole program
#include <strata/distribute/placed.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, frozen<batch_norm<>>, on_device<1, dense<10, softmax>>>;
#else
using net = sequential<input<28, 28, 1>, flatten, batch_norm<>, on_device<1, dense<10, softmax>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{thread_groups<2>{}}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: placed_device_missing
// error: missing_device<.*on_device<2>.*because<.*the_strategy_has_no_such_device_give_placed_more_thread_groups_or_gpus>
// whole program
#include <strata/distribute/placed.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, on_device<2, dense<64, relu>>, on_device<1, dense<10, softmax>>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{thread_groups<3>{}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{thread_groups<2>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: placed_of_a_number
// error: wrong_argument<.*int.*because<.*placed_takes_thread_groups_or_gpus_and_then_options>
// whole program
#include <strata/distribute/placed.hpp>

#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{thread_groups<3>{}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{3}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: placed_on_one_device
// error: missing_device<.*on_device<1>.*because<.*the_strategy_has_one_device_use_placed_or_leave_out_on_device>
// whole program
#include <strata/distribute/placed.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, on_device<0, dense<10, softmax>>>;
#else
using net = sequential<input<28, 28, 1>, flatten, on_device<1, dense<10, softmax>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
