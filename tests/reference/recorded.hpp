// The recorded tensors, and how a computed tensor is compared with one. README.md describes the files.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>
#include <strata/io/safetensors.hpp>
#include <string>
#include <vector>

#include "unit/larger.hpp"

namespace strata::test {
using namespace core;

/// A recorded file. It records which tensors were read, so that a test can check that it omitted none.
class recording {
  safetensors_file file_;
  std::set<std::string> asked_;

  static std::filesystem::path folder() {
    const char* tests = std::getenv("STRATA_TESTS");
    return (tests ? std::filesystem::path(tests) / "reference" : std::filesystem::path(__FILE__).parent_path()) / "recorded";
  }

 public:
  explicit recording(const std::string& name) : file_(folder() / (name + ".safetensors")) {}

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  const tensor_extents& extents(const std::string& name) const { return file_[name].extents; }

  /// The settings of a case.
  nlohmann::json settings(const std::string& name) const {
    return nlohmann::json::parse(file_.metadata().at("recording")).at("cases").at(name);
  }
  /// A tensor of real numbers, as T.
  template <class T = double>
  std::vector<T> tensor(const std::string& name) {
    const std::vector<double> values = read<double>(name);
    std::vector<T> out(values.size());
    std::ranges::transform(values, out.begin(), [](double v) { return static_cast<T>(v); });
    return out;
  }
  double number(const std::string& name) { return tensor(name).at(0); }
  /// Labels or steps.
  std::vector<std::int32_t> integers(const std::string& name) { return read<std::int32_t>(name); }

  /// Marks a tensor as read that is recorded but not part of strata.
  void leave_out(const std::string& name) { asked_.insert(name); }
  void leave_out_cases(const std::string& beginning) {
    for (const auto& e : file_.entries())
      if (e.name.starts_with(beginning)) asked_.insert(e.name);
  }
  /// The tensors that no test has read, in cases whose names start with `beginning`.
  std::string forgotten(const std::string& beginning = "") const {
    std::string names;
    for (const auto& e : file_.entries())
      if (e.name.starts_with(beginning) && !asked_.contains(e.name)) names += e.name + ' ';
    return names;
  }

 private:
  template <class T>
  std::vector<T> read(const std::string& name) {
    asked_.insert(name);
    return file_.read<T>(name);
  }
};

/// The tolerance of a precision, relative to the largest element of a tensor.
template <class T>
inline constexpr double tolerance_of = sizeof(T) == 4 ? 1e-5 : 1e-12;

/// The largest difference from `expected`, relative to the largest element of `expected`.
template <class T>
double deviation(std::span<const T> got, const std::vector<double>& expected) {
  double largest = 0, largest_element = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = larger(largest, std::abs(double(got[i]) - expected[i]));
    largest_element = std::max(largest_element, std::abs(expected[i]));
  }
  return largest / largest_element;
}

/// Checks that no element is further from the recorded one than `tolerance` times the largest recorded one.
template <class T>
void compare(const std::string& what, std::span<const T> got, const std::vector<double>& expected, double tolerance) {
  INFO(what);
  REQUIRE(got.size() == expected.size());
  REQUIRE(!expected.empty());
  CHECK(deviation(got, expected) <= tolerance);
}

}  // namespace strata::test
