// The network of one rank: shapes, parameters, and what it sends; rules, and which layers they match.
#include <strata/layers/dropout.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/residual.hpp>
#include <strata/network/layout.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/network/network_of_rank.hpp>

using namespace strata;
using namespace strata::core;

using net = sequential<input<28, 28, 1>, flatten, dense<32, relu>, dense<24, relu>, dense<10, softmax>>;
using rules = layout_map<rule<"dense", by_columns>, rule<"dense_1", by_rows>, rule<"dense_*", by_columns>>;
using rank = network_of_rank<net, rules, 2>;
constexpr const auto& nodes = tape_of<rank::items>.nodes;
constexpr const auto& slots = layout_of<rank::items>.slots;

// A pair: the output of dense stays divided, and dense_1 reads its part.
static_assert(nodes[2].out == shape{16} && nodes[3].out == shape{16} && nodes[4].out == shape{24});
static_assert(slots[0].what.extents == shape{784, 16} && slots[1].what.extents == shape{16});
static_assert(slots[2].what.extents == shape{16, 24} && slots[3].what.extents == shape{24});
static_assert(divisions_of<rank::items>[2].sends_forward(shape{784}) == 0);
static_assert(divisions_of<rank::items>[4].sends_forward(shape{16}) == 24 && divisions_of<rank::items>[4].adds_up_forward);
// The output of dense_2 is gathered in all ranks; a rank's part of the input gradient needs these rows of the kernel.
static_assert(nodes[6].out == shape{10});
static_assert(slots[4].what.extents == shape{24, 5} && slots[5].what.extents == shape{5});
static_assert(slots[6].what.extents == shape{12, 10} && !slots[6].what.trainable);
static_assert(divisions_of<rank::items>[6].sends_forward(shape{24}) == 5 &&
              divisions_of<rank::items>[6].sends_backward(shape{24}) == 12);
static_assert(layout_of<rank::items>.count == 7);

// Classes: the output is whole for the loss, which a rank computes for its part of them.
using of_classes = network_of_rank<net, layout_map<rule<"dense_2", by_classes>>, 5>;
static_assert(tape_of<of_classes::items>.nodes[6].out == shape{10} && of_classes::output_shape == shape{10});
static_assert(layout_of<of_classes::items>.slots[4].what.extents == shape{24, 2});
static_assert(divisions_of<of_classes::items>[6].classes == 2 &&
              divisions_of<of_classes::items>[6].sends_forward(shape{24}) == 3);
static_assert(divisions_of<of_classes::items>[6].sends_backward(shape{24}) == 24);
static_assert(detail::classes_of_rank_in<of_classes::items> == 2 && detail::classes_of_rank_in<rank::items> == 0);

// Dropout between two layers needs the whole output of the first one.
using with_dropout = sequential<input<8>, dense<16, relu>, dropout<0.5_r>, dense<4>>;
using of_dropout = network_of_rank<with_dropout, layout_map<rule<"dense", by_columns>, rule<"dense_1", by_rows>>, 2>;
static_assert(tape_of<of_dropout::items>.nodes[2].out == shape{16});
static_assert(layout_of<of_dropout::items>.slots[2].what.extents == shape{8, 4});

// Nothing trains below the first layer, nor above a frozen one without trained layers below it.
template <class Network, class Map>
constexpr int parameters_of_rank = layout_of<typename network_of_rank<Network, Map, 2>::items>.count;
static_assert(parameters_of_rank<sequential<input<8>, dense<16>>, layout_map<rule<"*", by_columns>>> == 2);
static_assert(parameters_of_rank<sequential<input<8>, frozen<dense<16>>, dense<16>>, layout_map<rule<"dense*", by_columns>>> ==
              4);
static_assert(parameters_of_rank<sequential<input<8>, dense<16>, frozen<dense<16>>>, layout_map<rule<"dense*", by_columns>>> ==
              5);
// An uneven part of the input is rounded up.
static_assert(layout_of<network_of_rank<sequential<input<8>, dense<5>, dense<6>>, layout_map<rule<"dense_1", by_columns>>, 2>::items>
                  .slots[4]
                  .what.extents == shape{3, 6});

// The table of an embedding by rows: 50 rows are 17, 17 and 16.
using words = sequential<input<6>, embedding<50, 8>, flatten, dense<5>>;
using of_words = network_of_rank<words, layout_map<rule<"embedding", by_rows>>, 3>;
static_assert(tape_of<of_words::items>.nodes[1].out == shape{6, 8});
static_assert(layout_of<of_words::items>.slots[0].what.extents == shape{17, 8});
static_assert(divisions_of<of_words::items>[1].sends_forward(shape{6}) == 48 && divisions_of<of_words::items>[1].adds_up_forward);

template <layer_pattern P>
constexpr bool matches(std::string_view name) {
  return P.matches(name);
}
static_assert(matches<"dense">("dense") && !matches<"dense">("dense_1") && !matches<"dense">("dens"));
static_assert(matches<"dense*">("dense") && matches<"dense*">("dense_12") && matches<"*">("") && !matches<"">("dense"));
static_assert(matches<"*_1">("conv2d_1_1") && matches<"c*2*1">("conv2d_1_1") && !matches<"c*3*1">("conv2d_1_1"));

// Rules match the names that summary prints, also in branches.
using branches = sequential<input<8>, residual<dense<8>, dense<8, relu>>, dense<4>>;
static_assert(detail::name_of_layer(tape_of<branches::items>, 1).view() == "dense");
static_assert(detail::name_of_layer(tape_of<branches::items>, 2).view() == "dense_1");
static_assert(detail::name_of_layer(tape_of<branches::items>, 3).view() == "dense_1");
static_assert(detail::name_of_layer(tape_of<branches::items>, 5).view() == "dense_2");
