// error: shape_mismatch<.*at_index<1>.*by_layer<.*subtract<.*receives<4>.*because<.*subtract_takes_two_branches>
#include <strata/layers/dense.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, subtract<branch<dense<4>>, branch<>>>;
#else
using net = sequential<input<4>, subtract<branch<dense<4>>, branch<dense<4>>, branch<>>>;
#endif
net n;
