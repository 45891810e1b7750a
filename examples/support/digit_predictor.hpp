// Inference behind a plain interface: files that include this header do not compile any of strata.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>

/// The network of the quickstart with weights from a file. Many threads may use it, and copies share the weights.
class digit_predictor {
 public:
  static constexpr std::size_t pixels = 28 * 28;

  /// Throws std::exception naming the file, or the layer that differs.
  explicit digit_predictor(const std::string& weights_file);

  /// image: row by row, in [0, 1]. Returns the probability of each digit.
  std::array<float, 10> operator()(std::span<const float, pixels> image) const;

 private:
  struct implementation;
  std::shared_ptr<const implementation> implementation_;
};
