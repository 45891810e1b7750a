// error: shape_mismatch<.*at_index<2>.*by_layer<.*embedding<10, 4>.*receives<7>.*because<.*embedding_takes_the_row_indices_of_the_batch>
#include <strata/layers/dense.hpp>
#include <strata/layers/embedding.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<7>, flatten, embedding<10, 4>>;
#else
using net = sequential<input<7>, dense<7>, embedding<10, 4>>;
#endif
net n;
