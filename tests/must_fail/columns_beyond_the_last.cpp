// error: shape_mismatch<.*at_index<1, 1, 0>.*by_layer<.*columns<3, 6>.*receives<8>.*because<.*columns_ends_beyond_the_last_column>
#include <strata/layers/columns.hpp>
#include <strata/layers/concat.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, concat<branch<columns<0, 3>>, branch<columns<3, 5>>>>;
#else
using net = sequential<input<8>, concat<branch<columns<0, 3>>, branch<columns<3, 6>>>>;
#endif
net n;
