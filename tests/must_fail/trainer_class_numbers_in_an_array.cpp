// error: data_mismatch<.*the_loss_takes_labels<.*because<.*use_sparse_categorical_crossentropy_or_put_data_one_hot_before_batch>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, adam{}, categorical_crossentropy{}};
#endif
  model.fit(x, y, epochs(1));
}
