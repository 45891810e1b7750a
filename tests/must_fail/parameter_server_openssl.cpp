// parameter_server.
// needs: openssl protozero

// case: parameter_server_of_cpus
// error: wrong_argument<.*tf_config, .*cpus>.*because<.*parameter_server_takes_a_resolver_such_as_tf_config_and_parameter_server_options>
// whole program
#include <strata/distribute/parameter_server.hpp>

#include <strata/distribute/mirrored.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parameter_server{tf_config(), {.compute = {.threads = 2}}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parameter_server{tf_config(), cpus(2)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
