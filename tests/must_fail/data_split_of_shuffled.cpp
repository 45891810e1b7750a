// error: data::split_dataset takes a view with random access: put it right after the data, before shuffle
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const auto [train, test] = data::split_dataset(data::synthetic_digits(64, 1), {.left_size = 0.5});
#else
  const auto [train, test] = data::split_dataset(data::synthetic_digits(64, 1) | data::shuffle(64), {.left_size = 0.5});
#endif
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(train | data::batch<8>, epochs(1), validation(test | data::batch<8>));
}
