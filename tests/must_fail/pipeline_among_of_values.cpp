// error: wrong_argument<.*in_process, .*balanced<2>.*because<.*write_pipeline_among_with_communicator_cut_and_micro_batches_in_angle_brackets>
// whole program
#include <strata/distribute/pipeline_among.hpp>

#include <strata/communicators/in_process.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check(const in_process& processes) {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline_among<in_process, balanced<2>>{processes}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline_among{processes, balanced<2>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
