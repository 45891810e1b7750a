// error: wrong_argument<.*fits_in<67108864>.*because<.*a_backend_is_a_template_argument_write_one_device_of_fits_in_8_MiB_in_angle_brackets>
// whole program
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<64_MiB>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, fits_in<64_MiB>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
