// embedding.
#include <strata/layers/activation.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/columns.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/embedding.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: columns_beyond_the_last
// error: shape_mismatch<.*at_index<1, 1, 0>.*by_layer<.*columns<3, 6>.*receives<8>.*because<.*columns_ends_beyond_the_last_column>
#ifdef TWIN
using net = sequential<input<8>, concat<branch<columns<0, 3>>, branch<columns<3, 5>>>>;
#else
using net = sequential<input<8>, concat<branch<columns<0, 3>>, branch<columns<3, 6>>>>;
#endif
net n;

// case: columns_without_columns
// error: shape_mismatch<.*at_index<1>.*by_layer<.*columns<2, 0>.*receives<8>.*because<.*columns_begins_at_0_or_later_and_takes_at_least_one>
#ifdef TWIN
using net = sequential<input<8>, columns<2, 1>>;
#else
using net = sequential<input<8>, columns<2, 0>>;
#endif
net n;

// case: embedding_activation
// error: wrong_option<.*at_index<1>.*by_layer<.*embedding<10, 4,.*relu.*because<.*the_layer_takes_no_activation>
#ifdef TWIN
using net = sequential<input<7>, embedding<10, 4>, activation<relu>>;
#else
using net = sequential<input<7>, embedding<10, 4, relu>>;
#endif
net n;

// case: embedding_after_dense
// error: shape_mismatch<.*at_index<2>.*by_layer<.*embedding<10, 4>.*receives<7>.*because<.*embedding_takes_the_row_indices_of_the_batch>
#ifdef TWIN
using net = sequential<input<7>, flatten, embedding<10, 4>>;
#else
using net = sequential<input<7>, dense<7>, embedding<10, 4>>;
#endif
net n;

// case: embedding_four_extents
// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<10, 4>.*receives<2, 3, 4, 5>.*because<.*embedding_takes_one_to_three_extents>
#ifdef TWIN
using net = sequential<input<2, 3, 4, 5>, reshape<2, 3, 20>, embedding<10, 4>>;
#else
using net = sequential<input<2, 3, 4, 5>, embedding<10, 4>>;
#endif
net n;

// case: embedding_too_large
// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<16777216, 128>.*receives<7>.*because<.*embedding_is_too_large>
#ifdef TWIN
using net = sequential<input<7>, embedding<16777216, 127>>;
#else
using net = sequential<input<7>, embedding<16777216, 128>>;
#endif
net n;

// case: embedding_too_many_rows
// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<16777217, 1>.*receives<7>.*because<.*embedding_has_at_most_2_to_the_24_rows>
#ifdef TWIN
using net = sequential<input<7>, embedding<16777216, 1>>;
#else
using net = sequential<input<7>, embedding<16777217, 1>>;
#endif
net n;

// case: embedding_unknown_option
// error: wrong_option<.*at_index<1>.*by_layer<.*embedding<10, 4,.*kernel_regularizer<.*because<.*the_layer_does_not_know_this_option>
#ifdef TWIN
using net = sequential<input<7>, embedding<10, 4, embeddings_regularizer<l2<>>>>;
#else
using net = sequential<input<7>, embedding<10, 4, kernel_regularizer<l2<>>>>;
#endif
net n;

// case: embedding_without_rows
// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<0, 4>.*receives<7>.*because<.*embedding_needs_at_least_one_row_and_one_column>
#ifdef TWIN
using net = sequential<input<7>, embedding<1, 4>>;
#else
using net = sequential<input<7>, embedding<0, 4>>;
#endif
net n;

// case: embedding_without_width
// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<10, 0>.*receives<7>.*because<.*embedding_needs_at_least_one_row_and_one_column>
#ifdef TWIN
using net = sequential<input<7>, embedding<10, 1>>;
#else
using net = sequential<input<7>, embedding<10, 0>>;
#endif
net n;
