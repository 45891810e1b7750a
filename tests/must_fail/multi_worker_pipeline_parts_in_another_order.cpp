// error: wrong_argument<.*tf_config, .*balanced<2>.*because<.*a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule>
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
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_pipeline<tf_config, balanced<2>>{tf_config()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
