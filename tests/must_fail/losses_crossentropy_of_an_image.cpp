// error: shape_mismatch<.*by_layer<.*categorical_crossentropy<.*receives<4, 4, 2>.*because<.*crossentropy_takes_a_rank_1_shape_of_classes>
#include <strata/layers/flatten.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4, 4, 2>, flatten, categorical_crossentropy<>>;
#else
using net = sequential<input<4, 4, 2>, categorical_crossentropy<>>;
#endif
net n;
