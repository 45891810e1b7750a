// error: network_does_not_fit_zero<.*because<.*stages_2_and_3_compute_by_segments_which_batch_norm_does_not_allow_use_zero_1
// whole program
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<8>, batch_norm<>, activation<relu>, dense<10, softmax>>;
#ifdef TWIN
using stage = zero<1>;
#else
using stage = zero<2>;
#endif

void check(const in_process& processes) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, synchronous_among{processes, {}, {}, stage{}}};
  model.fit(data::synthetic_digits(100) | data::batch<32>, epochs(1));
}
