// error: wrong_argument<.*communication_options.*because<.*they_are_options_of_communication_write_dot_communication_in_braces>
// whole program
// needs: grpc protozero
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
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
