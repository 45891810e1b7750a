// reshape.
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: reshape_five_extents
// error: shape_mismatch<.*at_index<1>.*by_layer<.*reshape<2, 2, 2, 2, 4>.*receives<8, 8, 1>.*because<.*reshape_takes_one_to_four_extents>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, reshape<2, 2, 4, 4>>;
#else
using net = sequential<input<8, 8, 1>, reshape<2, 2, 2, 2, 4>>;
#endif
net n;

// case: reshape_other_size
// error: shape_mismatch<.*at_index<1>.*by_layer<.*reshape<27, 28>.*receives<28, 28, 1>.*wants<756>.*because<.*reshape_must_keep_the_number_of_elements>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, reshape<14, 56>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, reshape<27, 28>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: reshape_zero
// error: shape_mismatch<.*at_index<1>.*by_layer<.*reshape<0, 64>.*receives<8, 8, 1>.*because<.*reshape_extents_must_be_positive>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, reshape<-1, 32>>;
#else
using net = sequential<input<8, 8, 1>, reshape<0, 64>>;
#endif
net n;
