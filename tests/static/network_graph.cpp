// Graphs: nodes in the order of the tape, shapes, parameters.
#include <strata/layers/add.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/network/graph.hpp>
#include <strata/network/layout.hpp>

using namespace strata;
using namespace strata::core;

namespace {
struct image : input<12, 12, 1> {};
struct tags : input<6> {};
struct seen : node<image, conv2d<8, 3, relu>, max_pool2d<2>, flatten> {};
struct told : node<tags, dense<8, relu>> {};
struct both : node<concat<seen, told>, dense<32, relu>> {};
struct kind : node<both, dense<3, softmax>> {};
struct box : node<both, dense<2>> {};
using net = graph<kind, box>;

constexpr const auto& t = tape_of<net::items>;
static_assert(network<net>);
static_assert(std::is_same_v<net::inputs, type_list<image, tags>>);
static_assert(std::is_same_v<net::outputs, type_list<kind, box>>);
static_assert(std::is_same_v<net::nodes, type_list<image, seen, tags, told, both, kind, box>>);
static_assert(detail::ends_of(t).input_count == 2 && t.nodes[detail::ends_of(t).inputs[1]].out == shape{6});
static_assert(t.nodes[t.size - 1].out == shape{2});
static_assert(layout_of<net::items>.trainable_count == (9 * 8 + 8) + (6 * 8 + 8) + (208 * 32 + 32) + (32 * 3 + 3) + (32 * 2 + 2));

// A graph in a row has the tape of a sequential.
struct features : input<4> {};
struct hidden : node<features, dense<8, relu>> {};
struct result : node<hidden, dense<2>> {};
using row = sequential<input<4>, dense<8, relu>, dense<2>>;
static_assert(tape_of<graph<result>::items>.size == tape_of<row::items>.size);
static_assert(layout_of<graph<result>::items>.size == layout_of<row::items>.size);

// An output may be read, and a node may belong to several graphs.
static_assert(std::is_same_v<graph<result, hidden>::nodes, type_list<features, hidden, result>>);
static_assert(tape_of<graph<hidden>::items>.nodes[tape_of<graph<hidden>::items>.size - 1].out == shape{8});

// Long skips: a node among the items of a branch is where the branch begins.
template <int F>
using twice = sequential<conv2d<F, 3, same_padding, relu>, conv2d<F, 3, same_padding, relu>>;
struct picture : input<16, 16, 3> {};
struct down_1 : node<picture, twice<8>> {};
struct down_2 : node<down_1, max_pool2d<2>, twice<16>> {};
struct bottom : node<down_2, max_pool2d<2>, twice<32>> {};
struct up_2 : node<concat<branch<bottom, conv2d_transpose<16, 2, stride<2>>>, down_2>, twice<16>> {};
struct up_1 : node<concat<branch<up_2, conv2d_transpose<8, 2, stride<2>>>, down_1>, twice<8>> {};
struct mask : node<up_1, conv2d<1, 1, sigmoid>> {};
constexpr const auto& u = tape_of<graph<mask>::items>;
static_assert(u.nodes[u.size - 1].out == shape{16, 16, 1});

// In the middle of a row a join may add a node to what is before it.
struct skipping : node<features, dense<4, relu>, dense<4>, add<branch<>, features>> {};
constexpr const auto& s = tape_of<graph<skipping>::items>;
static_assert(s.nodes[s.size - 1].arity == 2 && s.nodes[s.size - 1].input[1] == 0);

// Each repetition has weights of its own.
struct deep : node<features, repeated<3, dense<4, relu>>> {};
static_assert(layout_of<graph<deep>::items>.trainable_count == 3 * (4 * 4 + 4));
static_assert(tape_of<sequential<input<4>, repeated<2, dense<4>, dense<4>>>::items>.size == 5);

// The node of the tape at which each output ends: that of what it reads, if an output has no layers of its own.
struct alias : node<kind> {};
using aliased = graph<box, alias, kind>;
constexpr auto ends = aliased::ends_of_outputs();
static_assert(ends[1] == ends[2] && ends[0] != ends[1]);
static_assert(tape_of<aliased::items>.nodes[ends[0]].layer == &info_of_layer<dense<2>>);

// Losses follow the nodes that they compare, and belong to their layers.
struct any_loss {
  static constexpr auto name = "any";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
using compared = detail::items_of_graph<net::nodes, type_list<detail::node_with_loss<kind, any_loss>>>;
constexpr const auto& c = tape_of<compared>;
static_assert(c.size == t.size + 1);
static_assert(c.nodes[c.size - 2].layer_number == c.nodes[c.size - 3].layer_number);
static_assert(c.nodes[c.size - 1].layer_number == t.nodes[t.size - 1].layer_number);
}  // namespace
