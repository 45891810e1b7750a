// error: (has no non-static data member named .save_best.|field designator .save_best. does not refer to any field)
// whole program
#include <strata/callbacks/model_checkpoint.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, model_checkpoint{"best.safetensors", {.monitor = "loss", .save_best_only = true}});
#else
  model.fit(x, y, model_checkpoint{"best.safetensors", {.monitor = "loss", .save_best = true}});
#endif
}
