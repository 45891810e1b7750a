#include "digit_predictor.hpp"

#include <strata/strata.hpp>
#include <strata/train/predictor.hpp>
#include <strata/train/weights_file.hpp>

using namespace strata;

namespace {
struct digit_network : sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>,
                                  flatten, dense<64, relu>, dense<10, softmax>> {};
}  // namespace

struct digit_predictor::implementation {
  predictor<digit_network> model;
};

digit_predictor::digit_predictor(const std::string& weights_file)
    : implementation_(new implementation{predictor{digit_network{}, weights_file}}) {}

std::array<float, 10> digit_predictor::operator()(std::span<const float, pixels> image) const {
  std::array<float, 10> out;
  implementation_->model.predict(image, out);
  return out;
}
