// error: shape_mismatch<.*by_layer<.*categorical_crossentropy<.*because<.*label_smoothing_must_be_from_0_to_1>
#include <strata/layers/dense.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4>, categorical_crossentropy<label_smoothing<1>>>;
#else
using net = sequential<input<8>, dense<4>, categorical_crossentropy<label_smoothing<1.5_r>>>;
#endif
net n;
