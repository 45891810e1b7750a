// Graphs: edges and shapes.
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/network/graph.hpp>

using namespace strata;

// case: graph_with_unequal_branches
// error: shape_mismatch<.*in_node<.*both, 0>.*by_layer<.*concat<.*receives<6>.*beside<5, 5, 8>.*because<.*concat_takes_branches
struct image : input<12, 12, 1> {};
struct tags : input<6> {};
#ifdef TWIN
struct seen : node<image, conv2d<8, 3, relu>, max_pool2d<2>, flatten> {};
#else
struct seen : node<image, conv2d<8, 3, relu>, max_pool2d<2>> {};
#endif
struct both : node<concat<seen, tags>, dense<32, relu>> {};
struct kind : node<both, dense<3, softmax>> {};
using net = graph<kind>;
net n;

// case: graph_with_a_wrong_shape_inside_a_node
// error: shape_mismatch<.*in_node<.*seen, 3>.*by_layer<.*dense<.*receives<5, 5, 8>.*because<.*put_flatten_in_front
struct image : input<12, 12, 1> {};
#ifdef TWIN
struct seen : node<image, conv2d<8, 3, relu>, max_pool2d<2>, flatten, dense<32, relu>> {};
#else
struct seen : node<image, conv2d<8, 3, relu>, max_pool2d<2>, dense<32, relu>> {};
#endif
struct kind : node<seen, dense<3, softmax>> {};
using net = graph<kind>;
net n;

// case: graph_with_a_node_that_begins_at_a_layer
// error: wrong_edge<.*in_node<.*seen>.*wrong_argument<.*flatten.*because<.*a_node_begins_at_a_node_an_input_or_a_join_of_them>
struct image : input<12, 12, 1> {};
#ifdef TWIN
struct seen : node<image, flatten, dense<3, softmax>> {};
#else
struct seen : node<flatten, dense<3, softmax>> {};
#endif
using net = graph<seen>;
net n;

// case: graph_with_a_branch_that_begins_nowhere
// error: wrong_edge<.*in_node<.*both>.*wrong_argument<.*concat<.*because<.*a_node_begins_at_a_node_an_input_or_a_join_of_them>
struct x : input<12> {};
#ifdef TWIN
struct both : node<concat<x, branch<x, dense<3>>>> {};
#else
struct both : node<concat<x, branch<dense<3>>>> {};
#endif
using net = graph<both>;
net n;

// case: graph_with_an_input_without_a_name
// error: wrong_edge<.*in_node<.*seen>.*wrong_argument<.*input<12>.*because<.*an_input_of_a_graph_is_a_struct_with_a_name>
struct x : input<12> {};
#ifdef TWIN
struct seen : node<x, dense<3, softmax>> {};
#else
struct seen : node<input<12>, dense<3, softmax>> {};
#endif
using net = graph<seen>;
net n;

// case: graph_with_an_alias_for_a_node
// error: wrong_node<.*node<.*because<.*a_node_is_a_struct_with_a_name>
struct x : input<12> {};
#ifdef TWIN
struct query : node<x, dense<12>> {};
#else
using query = node<x, dense<12>>;
#endif
struct scores : node<multiply<query, x>, dense<3, softmax>> {};
using net = graph<scores>;
net n;

// case: graph_with_a_node_in_the_middle_of_a_row
// error: wrong_edge<.*in_node<.*seen>.*because<.*in_a_row_of_layers_a_node_stands_first>
struct x : input<12> {};
struct y : input<3> {};
#ifdef TWIN
struct seen : node<x, dense<3>, multiply<branch<>, y>> {};
#else
struct seen : node<x, dense<3>, y> {};
#endif
using net = graph<seen>;
net n;

// case: graph_with_a_node_that_needs_itself
// error: wrong_edge<.*in_node<.*first>.*because<.*a_node_cannot_need_itself>
struct x : input<3> {};
#ifdef TWIN
struct second : node<x, dense<3>> {};
#else
struct second;
#endif
struct first : node<multiply<x, second>, dense<3>> {};
#ifndef TWIN
struct second : node<first, dense<3>> {};
#endif
using net = graph<first>;
net n;

// case: graph_that_ends_in_a_layer
// error: wrong_argument<.*dense<3.*because<.*a_graph_ends_in_nodes>
struct x : input<12> {};
struct kind : node<x, dense<3, softmax>> {};
struct box : node<x, dense<3>> {};
#ifdef TWIN
using net = graph<kind, box>;
#else
using net = graph<kind, dense<3>>;
#endif
net n;

// case: graph_with_an_output_twice
// error: wrong_argument<.*kind.*because<.*a_graph_names_each_output_once>
struct x : input<12> {};
struct kind : node<x, dense<3, softmax>> {};
struct box : node<x, dense<3>> {};
#ifdef TWIN
using net = graph<kind, box>;
#else
using net = graph<kind, kind>;
#endif
net n;

// case: graph_with_nine_outputs
// error: wrong_argument<.*because<.*a_graph_has_at_most_8_inputs_and_8_outputs>
struct x : input<2> {};
template <int I>
struct out : node<x, dense<I>> {};
#ifdef TWIN
using net = graph<out<1>, out<2>, out<3>, out<4>, out<5>, out<6>, out<7>, out<8>>;
#else
using net = graph<out<1>, out<2>, out<3>, out<4>, out<5>, out<6>, out<7>, out<8>, out<9>>;
#endif
net n;

// case: graph_with_nine_inputs
// error: wrong_argument<.*because<.*a_graph_has_at_most_8_inputs_and_8_outputs>
template <int I>
struct x : input<I> {};
#ifdef TWIN
struct kind : node<concat<concat<x<1>, x<2>, x<3>, x<4>>, concat<x<5>, x<6>, x<7>, x<8>>>> {};
#else
struct kind : node<concat<concat<x<1>, x<2>, x<3>, x<4>>, concat<x<5>, x<6>, x<7>, x<8>, x<9>>>> {};
#endif
using net = graph<kind>;
net n;

// case: sequential_with_a_node
// error: shape_mismatch<.*at_index<1>.*because<.*nodes_named_inputs_and_shared_layers_belong_to_a_graph>
struct x : input<12> {};
struct seen : node<x, dense<3>> {};
#ifdef TWIN
using net = graph<seen>;
#else
using net = sequential<input<12>, seen>;
#endif
net n;

// case: repeated_zero_times
// error: shape_mismatch<.*at_index<1>.*because<.*repeated_takes_a_number_from_1_on_and_layers>
#ifdef TWIN
using net = sequential<input<12>, repeated<1, dense<12>>>;
#else
using net = sequential<input<12>, repeated<0, dense<12>>>;
#endif
net n;

// case: graph_with_a_wrong_edge_in_a_program
// error: wrong_edge<.*in_node<.*kind>.*because<.*a_node_begins_at_a_node_an_input_or_a_join_of_them>
// whole program
#include <strata/data.hpp>
#include <strata/strata.hpp>

struct image : input<28, 28, 1> {};
#ifdef TWIN
struct kind : node<image, flatten, dense<10, softmax>> {};
#else
struct kind : node<flatten, dense<10, softmax>> {};
#endif
void train() {
  trainer model{graph<kind>{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: graph_with_a_wrong_shape_in_a_program
// error: shape_mismatch<.*in_node<.*kind, 2>.*by_layer<.*dense<.*receives<28, 28, 4>.*because<.*put_flatten_in_front
// whole program
#include <strata/data.hpp>
#include <strata/strata.hpp>

struct image : input<28, 28, 1> {};
struct seen : node<image, conv2d<4, 3, same_padding>> {};
#ifdef TWIN
struct kind : node<seen, flatten, dense<10, softmax>> {};
#else
struct kind : node<concat<seen, image>, conv2d<4, 1>, dense<10, softmax>> {};
#endif
void train() {
  trainer model{graph<kind>{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: graph_with_shared_layers_that_receive_two_shapes
// error: shape_mismatch<.*in_node<.*code_2, 1>.*by_layer<.*dense<.*receives<5>.*wants<4>.*because<.*shared_layers_receive_one_shape>
struct first : input<4> {};
#ifdef TWIN
struct second : input<4> {};
#else
struct second : input<5> {};
#endif
struct encoder : shared<dense<3>> {};
struct code_1 : node<first, encoder> {};
struct code_2 : node<second, encoder> {};
struct same : node<multiply<code_1, code_2>, dense<1>> {};
graph<same> n;

// case: graph_with_shared_layers_that_are_frozen_once
// error: shape_mismatch<.*because<.*shared_layers_are_frozen_in_all_uses_or_in_none>
#include <strata/layers/frozen.hpp>

struct first : input<4> {};
struct second : input<4> {};
struct encoder : shared<dense<3>> {};
struct code_1 : node<first, encoder> {};
#ifdef TWIN
struct code_2 : node<second, encoder> {};
#else
struct code_2 : node<second, frozen<encoder>> {};
#endif
struct same : node<multiply<code_1, code_2>, dense<1>> {};
graph<same> n;

// case: graph_with_a_shared_batch_norm
// error: shape_mismatch<.*in_node<.*code_2, 1>.*because<.*shared_layers_have_no_batch_norm
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/layer_norm.hpp>

struct first : input<4> {};
struct second : input<4> {};
#ifdef TWIN
struct encoder : shared<dense<3>, layer_norm<>> {};
#else
struct encoder : shared<dense<3>, batch_norm<>> {};
#endif
struct code_1 : node<first, encoder> {};
struct code_2 : node<second, encoder> {};
struct same : node<multiply<code_1, code_2>, dense<1>> {};
graph<same> n;

// case: sequential_with_shared_layers
// error: shape_mismatch<.*at_index<1>.*because<.*nodes_named_inputs_and_shared_layers_belong_to_a_graph>
#ifdef TWIN
using encoder = dense<3>;
#else
struct encoder : shared<dense<3>> {};
#endif
using net = sequential<input<12>, encoder>;
net n;
