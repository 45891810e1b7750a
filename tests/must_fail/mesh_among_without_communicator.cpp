// error: incomplete_model<.*data_parallel<1>.*because<.*communicators_have_rank_and_size>
// whole program
#include <strata/distribute/mesh.hpp>

#include <strata/communicators/in_process.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using inner = tensor_parallel<2, layout_map<rule<"dense", by_columns>>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                mesh_among<in_process, data_parallel<1>, inner>{in_process::group(2)[0]}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mesh_among<data_parallel<1>, inner>{in_process::group(2)[0]}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
