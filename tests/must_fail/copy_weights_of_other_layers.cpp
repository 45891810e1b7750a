// error: copy_weights<Layers>: Layers must be exactly one item of each network
#include <strata/strata.hpp>
#include <strata/train/copy_weights.hpp>

using namespace strata;
using features = sequential<dense<8, relu>>;
using first = sequential<input<4>, features, dense<3, softmax>>;
#ifdef TWIN
using second = sequential<input<4>, features, dense<2, softmax>>;
#else
using second = sequential<input<4>, dense<8, relu>, dense<2, softmax>>;
#endif
void transfer() {
  trainer from{first{}, sgd{}, sparse_categorical_crossentropy{}};
  trainer to{second{}, sgd{}, sparse_categorical_crossentropy{}};
  copy_weights<features>(from, to);
}
