// error: shape_mismatch<.*at_index<1>.*by_layer<.*add<.*because<.*a_join_needs_at_least_one_branch>
#include <strata/layers/add.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, add<branch<>>>;
#else
using net = sequential<input<4>, add<>>;
#endif
net n;
