// error: take_averages: the optimizer keeps no averages: write ema\{adam\{\}\} instead of adam\{\}
#include <strata/strata.hpp>
#include <strata/train/take_averages.hpp>

using namespace strata;
#ifdef TWIN
using optimizer_of_mine = ema<adam>;
#else
using optimizer_of_mine = adam;
#endif

void check() {
  trainer model{sequential<input<8>, dense<10, softmax>>{}, optimizer_of_mine{adam{}}, sparse_categorical_crossentropy{}};
  take_averages(model);
}
