// Arguments of a trainer.

using namespace strata;

// case: trainer_adapt_without_normalization
// error: nothing_to_adapt<.*because<.*adapt_needs_a_normalization_after_input>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, normalization, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, flatten, dense<16, relu>, normalization, dense<10, softmax>>;
#endif
void train() {
  const auto digits = data::synthetic_digits(64, 1);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.adapt(digits | data::batch<32>);
  model.fit(digits | data::batch<32>, epochs(1));
}

// case: trainer_backend_as_strategy
// error: wrong_argument<.*fits_in<67108864>.*because<.*a_backend_is_a_template_argument_write_one_device_of_fits_in_8_MiB_in_angle_brackets>
// whole program
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<64_MiB>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, fits_in<64_MiB>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_layer_as_network
// error: wrong_argument<.*dense<10>.*because<.*a_trainer_takes_a_network_first_such_as_sequential>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = dense<10>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_loss_before_optimizer
// error: swapped_arguments<.*because<.*the_optimizer_comes_before_the_loss>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, sparse_categorical_crossentropy{}, adam{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_metric_as_loss
// error: wrong_argument<.*accuracy.*because<.*a_trainer_takes_a_loss_third_such_as_mean_squared_error>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
#else
  trainer model{net{}, adam{}, accuracy{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_metric_does_not_fit
// error: metric_does_not_go_with_labels<.*categorical_accuracy.*label_kind::sparse
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, sparse_categorical_accuracy{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, categorical_accuracy{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
  const auto [loss, accuracy] = model.evaluate(data::synthetic_digits(64, 1) | data::batch<32>);
  model.set_learning_rate(loss < accuracy ? 0.1 : 0.2);
}

// case: trainer_name_of_an_optimizer
// error: wrong_argument<.*char.*because<.*a_trainer_takes_an_optimizer_second_such_as_adam>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, "adam", sparse_categorical_crossentropy{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_two_strategies
// error: wrong_argument<.*mirrored.*because<.*a_trainer_takes_one_strategy_one_precision_and_one_seed>
// whole program
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, mirrored{cpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{}, accuracy{}, mirrored{cpus(2)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_unknown_argument
// error: wrong_argument<.*int.*because<.*a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, seed(3)};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, 3};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_without_loss
// error: wrong_argument<.*because<.*a_trainer_takes_a_network_an_optimizer_and_a_loss>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, adam{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
