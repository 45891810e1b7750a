// Strategies of several processes.
// needs: openssl protozero

using namespace strata;

// case: multi_worker_mirrored_devices_after_options
// error: wrong_argument<.*cpus.*because<.*multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options>
// whole program
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), cpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), {}, cpus(2)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: multi_worker_mirrored_fits_in_with_zero
// error: wrong_argument<.*fits_in<8388608>.*because<.*zero_2_and_zero_3_keep_the_activations_of_all_samples_leave_out_fits_in>
// whole program
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/program/fits_in.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored<fits_in<8_MiB>, zero<1>>{tf_config()}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored<fits_in<8_MiB>, zero<2>>{tf_config()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: multi_worker_mirrored_leaves_without_compute
// error: wrong_argument<.*compute_options.*because<.*threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces>
// whole program
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <type_traits>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  static_assert(std::is_same_v<decltype(multi_worker_mirrored{tf_config(), {}}), multi_worker_mirrored<>>);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), {.compute = {.leaves = 8}}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), {.leaves = 8}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: multi_worker_mirrored_packs_without_communication
// error: wrong_argument<.*communication_options.*because<.*they_are_options_of_communication_write_dot_communication_in_braces>
// whole program
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                multi_worker_mirrored{tf_config(), {.communication = {.bytes_per_pack = 4 << 20}}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                multi_worker_mirrored{tf_config(), {.bytes_per_pack = 4 << 20}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: multi_worker_mirrored_without_resolver
// error: wrong_argument<.*cpus, .*tf_config>.*because<.*multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options>
// whole program
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), cpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{cpus(2), tf_config()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: multi_worker_mirrored_zero_without_options
// error: wrong_argument<.*zero<1>.*because<.*multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options>
// whole program
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), {}, zero<1>{}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), zero<1>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: multi_worker_pipeline_parts_in_another_order
// error: wrong_argument<.*tf_config, .*balanced<2>.*because<.*a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule>
// whole program
#include <strata/distribute/multi_worker_mesh.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<balanced<2>>{tf_config()}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<tf_config, balanced<2>>{tf_config()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: multi_worker_pipeline_without_resolver
// error: wrong_argument<.*nothing.*because<.*a_resolver_such_as_tf_config_comes_first_and_returns_a_cluster_when_called>
// whole program
#include <strata/distribute/multi_worker_mesh.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<balanced<2>>{tf_config()}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<balanced<2>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
