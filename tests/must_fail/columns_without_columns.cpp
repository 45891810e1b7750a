// error: shape_mismatch<.*at_index<1>.*by_layer<.*columns<2, 0>.*receives<8>.*because<.*columns_begins_at_0_or_later_and_takes_at_least_one>
#include <strata/layers/columns.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, columns<2, 1>>;
#else
using net = sequential<input<8>, columns<2, 0>>;
#endif
net n;
