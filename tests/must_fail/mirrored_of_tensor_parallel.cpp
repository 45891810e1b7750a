// error: wrong_argument<.*tensor_parallel<2, .*because<.*mirrored_divides_batches_only_and_mesh_combines_it_with_other_divisions>
// whole program
#include <strata/distribute/mesh.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using halves = tensor_parallel<2, layout_map<rule<"dense", by_columns>>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mesh<data_parallel<2>, halves>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored<halves>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
