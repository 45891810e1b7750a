// error: wrong_argument<.*early_stopping ?\*.*because<.*a_callback_is_given_itself_without_an_ampersand>
// whole program
#include <strata/callbacks/early_stopping.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  early_stopping stops{.monitor = "loss"};
#ifdef TWIN
  model.fit(x, y, stops);
#else
  model.fit(x, y, &stops);
#endif
}
