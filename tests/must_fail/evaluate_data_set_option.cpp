// error: wrong_argument<.*batch_size.*because<.*batch_size_and_shuffle_go_with_arrays
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct counter {
  void on_test_end(pass_state&) {}
};
void evaluate() {
  const auto data = data::from_tensor_slices(data::array<float, shape{8}>(std::vector<float>(80)), std::vector<int>(10));
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.evaluate(data | data::batch<5>, counter{});
#else
  model.evaluate(data | data::batch<5>, batch_size(5));
#endif
}
