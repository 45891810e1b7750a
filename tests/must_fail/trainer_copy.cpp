// error: deleted.*trainer\(const trainer&\) = delete;  // a function takes it by reference
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  auto& other = model;
#else
  auto other = model;
#endif
  other.set_learning_rate(0.1);
}
