// error: wrong_argument<.*int.*because<.*placed_takes_thread_groups_or_gpus_and_then_options>
// whole program
#include <strata/distribute/placed.hpp>

#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{thread_groups<3>{}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{3}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
