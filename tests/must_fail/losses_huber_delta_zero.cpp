// error: shape_mismatch<.*by_layer<.*huber<.*because<.*huber_delta_must_be_positive>
#include <strata/layers/dense.hpp>
#include <strata/losses/huber.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4>, huber<0.5_r>>;
#else
using net = sequential<input<8>, dense<4>, huber<0>>;
#endif
net n;
