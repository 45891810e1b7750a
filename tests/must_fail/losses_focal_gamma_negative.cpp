// error: shape_mismatch<.*by_layer<.*binary_focal_crossentropy<.*because<.*focal_gamma_must_be_at_least_0>
#include <strata/layers/dense.hpp>
#include <strata/losses/binary_focal_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4, sigmoid>, binary_focal_crossentropy<focal_gamma<1.5_r>>>;
#else
using net = sequential<input<8>, dense<4, sigmoid>, binary_focal_crossentropy<focal_gamma<-1>>>;
#endif
net n;
