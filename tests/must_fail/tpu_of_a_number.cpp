// error: wrong_argument<int, .*because<.*tpu_takes_a_resolver_and_options
// whole program
#include <strata/strata.hpp>
#include <strata/xla/tpu.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tpu{tpu_vm{}, {.replicas = 4}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tpu{4}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
