// error: wrong_argument<.*compute_options.*because<.*threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces>
// whole program
// needs: grpc protozero
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <type_traits>

using namespace strata;
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
