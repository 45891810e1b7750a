// error: batch_cannot_be_cut<.*samples_in_a_batch<68>.*groups_of_micro_batches<2, 4>.*because<.*the_number_of_groups_times_that_of_micro_batches_divides_the_batch>
// whole program
#include <strata/distribute/mesh.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using parts =
    mesh<data_parallel<2>, pipeline<balanced<2>, micro_batches<4>>, tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>>;
#ifdef TWIN
constexpr int size = 64;
#else
constexpr int size = 68;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, parts{}};
  model.fit(data::synthetic_digits(136, 1) | data::batch<size>, epochs(1));
}
