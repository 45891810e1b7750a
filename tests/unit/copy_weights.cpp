// copy_weights: the weights and state of layers that two networks have in common, and no others.
#include <doctest/doctest.h>

#include <strata/strata.hpp>
#include <strata/train/copy_weights.hpp>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

using middle = sequential<dense<3, relu>, batch_norm<>, dense<2>>;
using first = sequential<input<4>, middle, dense<1>>;
using second = sequential<input<5>, dense<7, relu>, dense<4>, middle, batch_norm<>, dense<1>>;

auto trained(auto network, std::uint64_t with_seed) {
  constexpr int inputs = decltype(network)::input_shape.size();
  std::vector<float> x, y;
  for (int i = 0; i < 8 * inputs; ++i) x.push_back(float(philox{with_seed}.uniform(std::uint64_t(i))));
  for (int i = 0; i < 8; ++i) y.push_back(x[std::size_t(i * inputs)]);
  trainer model{network, adam{.learning_rate = 0.01}, mean_squared_error{}, seed(with_seed)};
  for (int step = 0; step < 3; ++step) model.train_step({x.data(), y.data(), 8});
  return model;
}

/// The elements of each parameter, in the order of the tape.
template <class Trainer>
std::vector<std::vector<float>> parameters_of(const Trainer& model) {
  std::vector<std::vector<float>> all;
  for (const parameter_slot& slot : layout_of<typename Trainer::network::items>.slots)
    if (slot.what.name) {
      const auto begin = model.parameters().begin() + slot.offset;
      all.emplace_back(begin, begin + slot.what.extents.size());
    }
  return all;
}

}  // namespace

TEST_CASE("weights and state of the common layers are copied, and no others") {
  const auto from = trained(first{}, 1);
  auto to = trained(second{}, 2);
  const auto have = parameters_of(from), before = parameters_of(to);
  copy_weights<middle>(from, to);
  const auto after = parameters_of(to);
  REQUIRE(have.size() == 8 + 2);           // kernel, bias; gamma, beta, mean, variance; kernel, bias; and the head
  REQUIRE(after.size() == 4 + 8 + 4 + 2);  // two dense layers in front, normalization and a head at the end
  for (std::size_t i = 0; i < after.size(); ++i)
    if (i >= 4 && i < 12) {
      CHECK(after[i] == have[i - 4]);
      CHECK(after[i] != before[i]);
    } else {
      CHECK(after[i] == before[i]);
    }
}

TEST_CASE("predictions after the copy are those of the copied weights") {
  using alone = sequential<input<4>, middle>;
  const auto from = trained(first{}, 1);
  trainer one{alone{}, sgd{}, mean_squared_error{}, seed(2)}, other{alone{}, sgd{}, mean_squared_error{}, seed(3)};
  const std::vector<float> x{1, 2, 3, 4};
  std::vector<float> expected(2), out(2);
  other.predict(x, out);  // derives layouts of its weights for its kernels
  copy_weights<middle>(from, one);
  copy_weights<middle>(from, other);
  one.predict(x, expected);
  other.predict(x, out);
  CHECK(out == expected);
}
