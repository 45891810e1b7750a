// embedding: shapes, parameters, options, where it stands, and what it refuses.
#include "layer_shapes.hpp"
#include <strata/strata.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<embedding<10, 4>>("embedding", "Embedding"));
static_assert(gives<embedding<10, 4>>({7}, {7, 4}) && gives<embedding<10, 4>>({1}, {1, 4}));
static_assert(gives<embedding<10, 4>>({7, 3}, {7, 3, 4}) && gives<embedding<10, 4>>({7, 3, 2}, {7, 3, 2, 4}));
static_assert(gives<embedding<1, 1>>({7}, {7, 1}));
static_assert(gives<embedding<16'777'216, 127>>({7}, {7, 127}));

static_assert(refuses<embedding<10, 4>>({7, 3, 2, 2}, reasons::embedding_takes_one_to_three_extents));
static_assert(refuses<embedding<0, 4>>({7}, reasons::embedding_needs_at_least_one_row_and_one_column));
static_assert(refuses<embedding<-1, 4>>({7}, reasons::embedding_needs_at_least_one_row_and_one_column));
static_assert(refuses<embedding<10, 0>>({7}, reasons::embedding_needs_at_least_one_row_and_one_column));
static_assert(refuses<embedding<16'777'217, 1>>({7}, reasons::embedding_has_at_most_2_to_the_24_rows));
static_assert(refuses<embedding<16'777'216, 128>>({7}, reasons::embedding_is_too_large));

static_assert(parameter_count<embedding<10, 4>>({7}) == 1);
static_assert(is(parameter_of<embedding<10, 4>>({7}, 0), "embeddings", {10, 4}, "random_uniform"));
static_assert(info_of_initializer<random_uniform<>>.fill == parameter_of<embedding<10, 4>>({7}, 0).start->fill);
using tuned = embedding<10, 4, embeddings_regularizer<l1_l2<0.5_r, 0.25_r>>, embeddings_initializer<random_normal<>>>;
static_assert(well_used<tuned>());
static_assert(is(parameter_of<tuned>({7}, 0), "embeddings", {10, 4}, "random_normal"));
static_assert(parameter_of<tuned>({7}, 0).regularizer.l1 == 0.5 && parameter_of<tuned>({7}, 0).regularizer.l2 == 0.25);
static_assert(parameter_of<embedding<10, 4>>({7}, 0).regularizer.empty());

static_assert(misused<embedding<10, 4, relu>>(0, reasons::the_layer_takes_no_activation));
static_assert(misused<embedding<10, 4, no_bias>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<embedding<10, 4, kernel_initializer<zeros>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<dense<4, embeddings_initializer<zeros>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<dense<4, embeddings_regularizer<l2<>>>>(0, reasons::the_layer_does_not_know_this_option));

// It takes the batch itself: views may stand between.
static_assert(well_shaped<input<12>, embedding<10, 4>, flatten, dense<3>>);
static_assert(well_shaped<input<3, 4>, embedding<10, 4>, layer_norm<>, flatten, dense<3>>);
static_assert(well_shaped<input<12>, reshape<3, 4>, embedding<10, 4>>);
static_assert(well_shaped<input<3, 2, 2, 1>, reshape<-1, 2>, flatten, embedding<10, 4>>);
static_assert(well_shaped<input<12>, concat<branch<embedding<10, 4>>, branch<embedding<20, 3>>>, global_max_pool1d, dense<3>>);
static_assert(!well_shaped<input<12>, dense<4>, embedding<10, 4>>);
static_assert(!well_shaped<input<12>, activation<relu>, embedding<10, 4>>);
static_assert(!well_shaped<input<12>, dropout<0.5_r>, embedding<10, 4>>);
static_assert(!well_shaped<input<12>, embedding<10, 4>, embedding<10, 4>>);
static_assert(!well_shaped<input<12>, residual<dense<12>>, embedding<10, 4>>);

// The tables of a program.
template <class... Items>
using program_of = program<sequential<Items...>, sparse_categorical_crossentropy<>, adam, type_list<>>;
static_assert(row_tables_of_program<program_of<input<12>, dense<3, softmax>>>.empty());
using two_branches = concat<branch<embedding<10, 5>, dropout<0.5_r>>, branch<embedding<20, 3>>>;
inline constexpr auto two = row_tables_of_program<program_of<input<12>, two_branches, flatten, dense<3, softmax>>>;
static_assert(two.size() == 2);
static_assert(two[0].begin == 0 && two[0].rows == 10 && two[0].width == 5);
static_assert(two[1].begin == 64 && two[1].rows == 20 && two[1].width == 3 && two[1].layer != two[0].layer);
