// error: wrong_argument<.*tf_config *\(\).*because<.*in_angle_brackets_a_resolver_is_a_type_such_as_tf_config_without_parentheses>
// whole program
// needs: grpc protozero
#include <strata/distribute/multi_worker_mesh.hpp>

#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using inner = tensor_parallel<2, layout_map<rule<"dense", by_columns>>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mesh<tf_config, data_parallel<1>, inner>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mesh<tf_config(), data_parallel<1>, inner>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
