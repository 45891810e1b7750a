// error: shape_mismatch<.*by_layer<.*sparse_categorical_crossentropy<.*receives<1>.*because<.*crossentropy_needs_at_least_2_classes_with_one_output_use_binary_crossentropy>
#include <strata/layers/dense.hpp>
#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<1, sigmoid>, binary_crossentropy<>>;
#else
using net = sequential<input<8>, dense<1, sigmoid>, sparse_categorical_crossentropy<>>;
#endif
net n;
