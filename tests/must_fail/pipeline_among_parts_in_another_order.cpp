// error: incomplete_model<.*balanced<2>.*because<.*communicators_have_rank_and_size>
// whole program
#include <strata/distribute/pipeline_among.hpp>

#include <strata/communicators/in_process.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                pipeline_among<in_process, balanced<2>>{in_process::group(2)[0]}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                pipeline_among<balanced<2>, in_process>{in_process::group(2)[0]}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
