// error: shape_mismatch<.*at_index<1>.*by_layer<.*add<.*receives<4>.*because<.*a_join_takes_at_most_8_branches>
#include <strata/layers/add.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, add<branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>>>;
#else
using net = sequential<input<4>, add<branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>>>;
#endif
net n;
