// frozen: its weights are state, what is not trained has no gradient, and batch_norm uses its moving statistics.
#include <strata/strata.hpp>
#include <string_view>
#include <type_traits>
using namespace strata;
using namespace strata::core;

using head = dense<3, softmax>;
template <class... Items>
using net = sequential<input<6, 6, 2>, Items...>;
using trained = net<conv2d<4, 3, no_bias>, batch_norm<>, activation<relu>, residual<conv2d<4, 1>>, flatten, head>;
using tuned = net<frozen<conv2d<4, 3, no_bias>, batch_norm<>, activation<relu>, residual<conv2d<4, 1>>, flatten>, head>;
template <class Network>
using program_of = program<Network, sparse_categorical_crossentropy<>, adam, type_list<>>;

// Shapes and the order of layers and parameters are the same; only what is trained differs.
static_assert(tuned::output_shape == trained::output_shape);
constexpr const auto& before = layout_of<trained::items>;
constexpr const auto& after = layout_of<tuned::items>;
static_assert(before.count == after.count && before.size == after.size);
static_assert(before.state_count == 8 && after.trainable_count == 64 * 3 + 3);
static_assert(after.state_count + after.trainable_count == before.state_count + before.trainable_count);
static_assert([] {
  for (int s = 0; s < before.count; ++s)
    if (std::string_view(before.slots[s].what.name) != after.slots[s].what.name ||
        before.slots[s].what.extents != after.slots[s].what.extents || after.slots[s].what.trainable != (s >= after.count - 2) ||
        after.slots[s].what.frozen != (before.slots[s].what.trainable && s < after.count - 2))
      return false;
  return true;
}());

// Layers may be frozen twice, as a sequential, in branches, or as a network with its input.
static_assert(layout_of<net<frozen<flatten>, frozen<frozen<dense<3>>>>::items>.trainable == 0);
static_assert(layout_of<net<add<frozen<conv2d<4, 1>>, branch<conv2d<4, 1>>>, flatten, dense<2>>::items>.state_count == 12);
static_assert(layout_of<net<frozen<sequential<input<6, 6, 2>, conv2d<4, 1>>>, flatten, dense<2>>::items>.state_count == 12);
static_assert(net<frozen<>, flatten>::output_shape == shape{72});

// No gradient is computed below the first layer that trains, and statistics of the batch are not needed.
constexpr const auto& plan_before = plan_of<program_of<trained>, reference>;
constexpr const auto& plan_after = plan_of<program_of<tuned>, reference>;
static_assert(plan_before.segment_count == 2 && plan_after.segment_count == 1 && plan_after.statistics == 0);
static_assert([] {
  int training = 0;
  for (int g = 0; g < plan_after.group_count; ++g) {
    training += plan_after.groups[g].trains;
    for (const bool wanted : plan_after.groups[g].wants_dx)
      if (wanted && !plan_after.groups[g].trains) return false;
  }
  return training == 2;  // dense, and softmax with its loss
}());
// A frozen layer passes on the gradient for the layers below it.
constexpr const auto& plan_between =
    plan_of<program_of<net<conv2d<4, 3>, frozen<batch_norm<>, flatten, dense<8>>, head>>, reference>;
static_assert(plan_between.groups[1].trains && plan_between.groups[1].wants_dx[0] && plan_between.groups[2].wants_dx[0]);

// Only trained parameters have penalties.
using penalised = dense<3, kernel_regularizer<l2<0.1_r>>>;
static_assert(layout_of<net<flatten, penalised>::items>.has_regularizers());
static_assert(!layout_of<net<flatten, frozen<penalised>>::items>.has_regularizers());
