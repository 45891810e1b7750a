// error: a network starts with input
#include <strata/network/sequential.hpp>
#include <strata/layers/dense.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, dense<8>>;
#else
using net = sequential<dense<8>>;
#endif
net n;
