// The only file of the program that compiles the network.
#include "digit_model.hpp"

#include <algorithm>
#include <strata/strata.hpp>
#include <strata/train/weights_file.hpp>

using namespace strata;
using namespace strata::core;

namespace {
struct network : sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>> {};

auto make_model(std::uint64_t s) { return trainer{network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, seed(s)}; }
}  // namespace

struct digit_model::implementation {
  decltype(make_model(1)) model;
};

digit_model::digit_model(std::uint64_t seed) : implementation_(new implementation{make_model(seed)}) {}
digit_model::~digit_model() = default;
digit_model::digit_model(digit_model&&) noexcept = default;
digit_model& digit_model::operator=(digit_model&&) noexcept = default;

double digit_model::train(int count, int epoch_count) {
  const auto digits = data::synthetic_digits(std::size_t(count), 1), others = data::synthetic_digits(1'000, 2);
  implementation_->model.fit(digits | data::shuffle(10'000) | data::batch<32>, epochs(epoch_count), verbosity::off);
  return implementation_->model.evaluate(others | data::batch<32>)["accuracy"];
}

int digit_model::classify(std::span<const float, 28 * 28> image) {
  float probability[10];
  implementation_->model.predict(image, probability);
  return int(std::max_element(probability, probability + 10) - probability);
}

void digit_model::save(const std::string& path) const { implementation_->model.save_weights(path); }
void digit_model::load(const std::string& path) { implementation_->model.load_weights(path); }
