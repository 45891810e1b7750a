// error: a network starts with input
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, dense<8>>;
#else
using net = sequential<dense<8>>;
#endif
net n;
