// Files of weights: load_weights with and without conversion, and save_weights of weights that were read.
#include <strata/layers/dense.hpp>
#include <strata/layers/input.hpp>
#include <strata/train/weights_file.hpp>

#include "fuzz.hpp"
using namespace strata;
using namespace strata::core;

namespace {
using network_of_one_layer = sequential<input<2>, dense<2>>;
using arena_of_weights = std::array<float, std::size_t(layout_of<network_of_one_layer::items>.size)>;
using doubles = std::array<double, arena_of_weights{}.size()>;

std::vector<std::string> seeds() {
  const arena_of_weights some{1, 2, 3, 4};
  const doubles wide{5, 6, 7, 8};
  return {fuzz::with_choice(0, fuzz::written([&](const auto& path) { save_weights<network_of_one_layer, float>(path, some); })),
          fuzz::with_choice(1, fuzz::written([&](const auto& path) { save_weights<network_of_one_layer, double>(path, wide); }))};
}

std::vector<std::string> larger(int count) {
  const float x = 1;
  std::vector<safetensor> tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(safetensor::of("layer " + std::to_string(i), {}, std::span(&x, 1)));
  return {fuzz::with_choice(0, fuzz::written([&](const auto& path) { write_safetensors(path, tensors); }))};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const fuzz::file file(chosen.rest);
  arena_of_weights weights{}, again{};
  load_weights<network_of_one_layer, float>(file.path(), weights,
                                            chosen.number & 1 ? convert_precision::yes : convert_precision::no);
  fuzz::accepted([&] {
    const fuzz::file copy(fuzz::written([&](const auto& path) { save_weights<network_of_one_layer, float>(path, weights); }));
    load_weights<network_of_one_layer, float>(copy.path(), again);
    fuzz::check(fuzz::bytes_of(again) == fuzz::bytes_of(weights));
  });
}

const fuzz::target weights_file{"weights", seeds, read, larger};
}  // namespace
