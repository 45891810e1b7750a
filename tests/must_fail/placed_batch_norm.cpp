// error: cannot_be_split<.*by_layer<.*batch_norm<>.*because<.*batch_norm_needs_the_whole_batch_at_once_use_layer_norm_or_freeze_it>
// whole program
#include <strata/distribute/placed.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, frozen<batch_norm<>>, on<device<1>, dense<10, softmax>>>;
#else
using net = sequential<input<28, 28, 1>, flatten, batch_norm<>, on<device<1>, dense<10, softmax>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{thread_groups<2>{}}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
