// error: (has no non-static data member named .patiance.|field designator .patiance. does not refer to any field)
// whole program
#include <strata/callbacks/early_stopping.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, early_stopping{.monitor = "loss", .patience = 3});
#else
  model.fit(x, y, early_stopping{.monitor = "loss", .patiance = 3});
#endif
}
