// error: data::shuffle takes a view of samples or elements: put it before batch
// whole program
#include <strata/data.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const auto folds = data::k_fold(data::synthetic_digits(64, 1), 4);
#else
  const auto folds = data::k_fold(data::synthetic_digits(64, 1) | data::batch<8> | data::shuffle(64), 4, {.shuffle = true});
#endif
  for (const auto& [train, test] : folds) {
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
    model.fit(train | data::batch<8>, epochs(1), validation(test | data::batch<8>));
  }
}
