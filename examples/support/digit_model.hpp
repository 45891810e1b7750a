// A model behind a plain interface: files that include this header do not compile any of strata.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

class digit_model {
 public:
  explicit digit_model(std::uint64_t seed = 1);
  ~digit_model();
  digit_model(digit_model&&) noexcept;
  digit_model& operator=(digit_model&&) noexcept;

  /// Trains on rendered digits; returns the accuracy on others.
  double train(int count, int epochs);
  /// image: 28 x 28 pixels in [0, 1], row by row. Returns the most likely digit.
  int classify(std::span<const float, 28 * 28> image);
  /// Writes the weights as safetensors.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};
