// Typed views of a layer's parameters point at the right places of the arena.
#include <doctest/doctest.h>

#include <boost/hana/for_each.hpp>
#include <boost/hana/size.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/parameter_views.hpp>
#include <vector>

using namespace strata;
using namespace strata::core;
namespace hana = boost::hana;

using net = sequential<input<5, 5, 2>, conv2d<3, 3, relu>, batch_norm<>, flatten, dense<4>>;

TEST_CASE("parameters_of_layer") {
  constexpr const auto& layout = layout_of<net::items>;
  std::vector<float> arena(std::size_t(layout.size));
  for (int s = 0; s < layout.count; ++s)
    for (int i = 0; i < layout.slots[s].what.extents.size(); ++i)
      arena[std::size_t(layout.slots[s].offset) + std::size_t(i)] = float(100 * s + i);

  const auto conv = parameters_of_layer<net, 1>(std::span(arena));
  static_assert(decltype(hana::size(conv))::value == 2);
  static_assert(std::remove_cvref_t<decltype(conv[hana::size_c<0>])>::extents == shape{3, 3, 2, 3});
  CHECK(conv[hana::size_c<0>](1, 2, 0, 1) == 31);
  CHECK(conv[hana::size_c<1>](2) == 102);

  std::vector<float> first;
  hana::for_each(parameters_of_layer<net, 2>(std::span<const float>(arena)), [&](auto view) { first.push_back(view(0)); });
  CHECK(first == std::vector<float>{200, 300, 400, 500});
  CHECK(parameters_of_layer<net, 4>(std::span(arena))[hana::size_c<0>](26, 3) == 600 + 26 * 4 + 3);
}
