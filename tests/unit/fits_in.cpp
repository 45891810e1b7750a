// Activations in a budget: some are computed again in the backward pass, to the same bits.
#include <doctest/doctest.h>

#include <cstring>
#include <sstream>
#include <strata/distribute/mirrored.hpp>
#include <strata/program/fits_in.hpp>
#include <strata/program/print_plan.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
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
  return detail::bytes_of_activations(p, samples_at_a_time<program_of<Network>, Backend, purpose::training>::of(), sizeof(float));
}
/// The bytes of the activations of so many samples in the whole plan.
template <class Network>
constexpr long bytes_of_whole(int samples) {
  return detail::bytes_of_activations(plan_of<program_of<Network>, cpu>, samples, sizeof(float));
}

template <class Network>
std::vector<float> trained(auto executor) {
  using P = program_of<Network>;
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
template <class Network, class Backend>
std::vector<float> trained_by(compute_options options) {
  return trained<Network>(synchronous_executor<program_of<Network>, Backend>(adam{.learning_rate = 0.01}, 3, options));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <class Network, long Bytes, int Samples, bool InPieces>
void check_bits() {
  using backend = fits_in<Bytes, cpu>;
  static_assert(bytes<Network, cpu>() > Bytes && bytes<Network, backend>() <= Bytes);
  static_assert(samples_at_a_time<program_of<Network>, backend, purpose::training>::of() == Samples);
  static_assert((plan_of<program_of<Network>, backend>.piece_count > 1) == InPieces);
  CHECK(same_bits(trained_by<Network, backend>({.threads = 1, .leaves = 1}),
                  trained_by<Network, cpu>({.threads = 1, .leaves = 1})));
  const auto expected = trained_by<Network, cpu>({.threads = 1, .leaves = 4});
  CHECK(same_bits(trained_by<Network, backend>({.threads = 2, .leaves = 4}), expected));
  CHECK(same_bits(trained<Network>(mirrored<backend>{cpus(2), {.leaves = 4}}.template make<program_of<Network>>(
                      adam{.learning_rate = 0.01}, 3)),
                  expected));
}
}  // namespace

TEST_CASE("what is computed again, or with fewer samples at a time, has the same bits") {
  constexpr int in_cache = samples_in_cache<program_of<deep>, cpu, purpose::training>();
  static_assert(in_cache == 256);
  check_bits<deep, bytes<deep, cpu>() * 9 / 10, 128, false>();
  check_bits<deep, bytes_of_whole<deep>(64) * 9 / 10, 32, false>();
  // With 8 samples at a time reading weights would take longer than computing activations again.
  check_bits<deep, bytes_of_whole<deep>(16) * 9 / 10, 16, true>();
  check_bits<deep, bytes_of_whole<deep>(1) - 1'000, 1, true>();
  // For images, one sample at a time takes less time than computing activations again.
  check_bits<images, bytes_of_whole<images>(8) - 2'000, 4, false>();
  check_bits<images, bytes_of_whole<images>(1) - 200, 1, true>();
}

TEST_CASE("a micro-batch of more samples than the budget allows is not computed together") {
  using backend = fits_in<bytes_of_whole<deep>(8), cpu>;
  prepared_plan<program_of<deep>, backend, purpose::training> plan;
  plan.prepare(1, 48, 1, 64);
  CHECK(plan.micro_batch() == 8);
  prepared_plan<program_of<deep>, backend, purpose::training> smaller;
  smaller.prepare(1, 48, 1, 3);
  CHECK(smaller.micro_batch() == 3);
  // Inference has a plan of its own, because of dropout.
  prepared_plan<program_of<deep>, backend, purpose::inference> of_inference;
  of_inference.prepare(1, 1000, 1, 0);
  CHECK(detail::bytes_of_activations(plan_of<program_of<deep>, backend, purpose::inference>, of_inference.micro_batch(),
                                     sizeof(float)) <= backend::most_bytes);
}

TEST_CASE("print_plan names the pieces") {
  std::ostringstream out;
  print_plan<program_of<deep>, fits_in<bytes_of_whole<deep>(16) * 9 / 10>>(out);
  CHECK(contains(out.str(), ", for the samples of a micro-batch, at most 16\n"));
  CHECK(contains(out.str(), "pieces      computed again before their backward pass: %0 to %"));
  std::ostringstream whole;
  print_plan<program_of<deep>, cpu>(whole);
  CHECK(!contains(whole.str(), "pieces"));
}

TEST_CASE("a budget that is large enough changes nothing") {
  static_assert(plan_of<program_of<deep>, fits_in<1_GiB>>.piece_count == 1);
  static_assert(bytes<deep, fits_in<1_GiB>>() == bytes<deep, cpu>());
}
