// error: wrong_argument<.*nothing.*because<.*a_resolver_such_as_tf_config_comes_first_and_returns_a_cluster_when_called>
// whole program
// needs: grpc protozero
#include <strata/distribute/multi_worker_pipeline.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<balanced<2>>{tf_config()}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<balanced<2>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
