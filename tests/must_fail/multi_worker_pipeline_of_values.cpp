// error: wrong_argument<.*tf_config, .*balanced<2>.*because<.*write_multi_worker_pipeline_with_resolver_cut_and_micro_batches_in_angle_brackets>
// whole program
// needs: grpc protozero
#include <strata/distribute/multi_worker_pipeline.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<tf_config, balanced<2>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline{tf_config(), balanced<2>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
