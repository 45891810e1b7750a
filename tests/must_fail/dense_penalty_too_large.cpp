// error: wrong_option<.*at_index<1>.*by_layer<.*dense<4,.*kernel_regularizer<.*because<.*a_penalty_must_be_at_least_0_and_at_most_1e38>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4, kernel_regularizer<l2<1e38_r>>>>;
#else
using net = sequential<input<8>, dense<4, kernel_regularizer<l2<2e38_r>>>>;
#endif
net n;
