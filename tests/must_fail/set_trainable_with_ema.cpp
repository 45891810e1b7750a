// error: set_trainable: the optimizer ema averages the weights of all layers: write frozen<\.\.\.> around those that shall not change
#include <strata/optimizers/ema.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using optimizer_of_mine = adam;
#else
using optimizer_of_mine = ema<adam>;
#endif

void check() {
  trainer model{sequential<input<8>, dense<10, softmax>>{}, optimizer_of_mine{adam{}}, sparse_categorical_crossentropy{}};
  model.set_trainable("dense", false);
}
