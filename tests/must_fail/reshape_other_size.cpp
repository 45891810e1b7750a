// error: shape_mismatch<.*at_index<1>.*by_layer<.*reshape<8, 9>.*receives<8, 8, 1>.*because<.*reshape_must_keep_the_number_of_elements>
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, reshape<4, 16>>;
#else
using net = sequential<input<8, 8, 1>, reshape<8, 9>>;
#endif
net n;
