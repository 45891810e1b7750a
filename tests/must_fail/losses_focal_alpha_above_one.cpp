// error: shape_mismatch<.*by_layer<.*categorical_focal_crossentropy<.*because<.*focal_alpha_must_be_from_0_to_1>
#include <strata/layers/dense.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<focal_alpha<0.5_r>>>;
#else
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<focal_alpha<1.5_r>>>;
#endif
net n;
