// error: wrong_argument<.*tensor_slices.*because<.*the_data_must_come_in_batches_put_batch_after_it>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train(data::array<float, shape{8}> x, std::vector<int> labels) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(x, labels) | data::batch<32>);
#else
  model.fit(data::from_tensor_slices(x, labels));
#endif
}
