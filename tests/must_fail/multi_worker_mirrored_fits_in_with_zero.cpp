// error: wrong_argument<.*fits_in<8388608>.*because<.*zero_2_and_zero_3_keep_the_activations_of_all_samples_leave_out_fits_in>
// whole program
// needs: grpc protozero
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/program/fits_in.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored<fits_in<8_MiB>, zero<1>>{tf_config()}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored<fits_in<8_MiB>, zero<2>>{tf_config()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
