// Activations in a budget: some are computed again in the backward pass, to the same bits.
#include <doctest/doctest.h>

#include <cstring>
#include <sstream>
#include <strata/distribute/mirrored.hpp>
#include <strata/program/fits_in.hpp>
#include <strata/program/print_plan.hpp>
#include <strata/strata.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"

using namespace strata;
using namespace strata::test;

namespace {
template <class Network>
using program_of = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;

using deep = sequential<input<64>, dense<64, relu>, dropout<0.2_r>, dense<64, tanh_activation>, layer_norm<>, dense<64, relu>,
                        residual<layer_norm<>, dense<64, sigmoid>, dense<64>>, dense<64, relu>, dense<64, relu>, dense<64, relu>,
                        dense<10, softmax>>;
using images = sequential<input<12, 12, 3>, conv2d<16, 3, relu>, conv2d<16, 3, relu>, max_pool2d<2>, dropout<0.1_r>,
                          conv2d<8, 1, relu>, conv2d<8, 1, relu>, flatten, dense<16, relu>, dense<10, softmax>>;

template <class Network, class Backend>
constexpr long bytes() {
  constexpr const auto& p = plan_of<program_of<Network>, Backend>;
  return detail::bytes_of_activations(p, samples_in_cache<program_of<Network>, Backend, purpose::training>(), sizeof(float));
}

template <class Network, class Backend>
std::vector<float> trained(int threads, int leaves) {
  using P = program_of<Network>;
  synchronous_executor<P, Backend> executor(adam{.learning_rate = 0.01}, 3, {.threads = threads, .leaves = leaves});
  executor.prepare(48, purpose::training);
  executor.prepare(48, purpose::inference);
  std::vector<float> out;
  for (unsigned step = 0; step < 3; ++step)
    for (const metric_sum& sum : executor.train_step(random_batch<P>(48, step).view()))
      out.insert(out.end(), {float(sum.sum), float(sum.count)});
  for (const metric_sum& sum : executor.evaluate_step(random_batch<P>(48, 9).view())) out.push_back(float(sum.sum));
  out.insert(out.end(), executor.parameters().begin(), executor.parameters().end());
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <class Network, long Bytes>
void check_bits() {
  using backend = fits_in<Bytes, cpu>;
  static_assert(bytes<Network, cpu>() > Bytes && bytes<Network, backend>() <= Bytes);
  static_assert(plan_of<program_of<Network>, backend>.piece_count > 1);
  CHECK(same_bits(trained<Network, backend>(1, 1), trained<Network, cpu>(1, 1)));
  CHECK(same_bits(trained<Network, backend>(2, 4), trained<Network, cpu>(1, 4)));
}
}  // namespace

TEST_CASE("what is computed again has the same bits") {
  check_bits<deep, bytes<deep, cpu>() * 9 / 10>();
  check_bits<deep, bytes<deep, cpu>() * 2 / 3>();
  check_bits<images, bytes<images, cpu>() - 14'000>();
}

TEST_CASE("other strategies take a budget, too") {
  using P = program_of<deep>;
  using backend = fits_in<bytes<deep, cpu>() * 9 / 10>;
  auto executor = mirrored<backend>{cpus(2)}.make<P>(adam{}, 3);
  static_assert(std::is_same_v<decltype(executor), synchronous_executor<P, backend>>);
  CHECK(executor.parameters().size() > 0);
}

TEST_CASE("print_plan names the pieces") {
  std::ostringstream out;
  print_plan<program_of<deep>, fits_in<bytes<deep, cpu>() * 2 / 3>>(out);
  CHECK(contains(out.str(), "pieces      computed again before their backward pass: %0 to %"));
  std::ostringstream whole;
  print_plan<program_of<deep>, cpu>(whole);
  CHECK(!contains(whole.str(), "pieces"));
}

TEST_CASE("a budget that is large enough changes nothing") {
  static_assert(plan_of<program_of<deep>, fits_in<1_GiB>>.piece_count == 1);
  static_assert(bytes<deep, fits_in<1_GiB>>() == bytes<deep, cpu>());
}
