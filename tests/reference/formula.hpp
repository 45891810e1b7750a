// Inputs, labels and initial weights of the recorded models, which are not stored: README.md, "Inputs by formula".
#pragma once
#include <cstdint>

#include "recorded.hpp"

namespace strata::test {

constexpr std::uint32_t mix(std::uint32_t h) {
  h ^= h >> 16, h *= 0x7FEB352D;
  h ^= h >> 15, h *= 0x846CA68B;
  return h ^ h >> 16;
}
constexpr std::uint32_t hash(std::uint32_t stream, std::uint32_t i) { return mix(mix(stream) ^ mix(i + 0x9E3779B9)); }
constexpr double value(std::uint32_t stream, std::uint32_t i, double scale, double offset) {
  return offset + scale * (2 * double(hash(stream, i) >> 16) - 65535) / 65536;
}
static_assert(mix(1) == 0x688990c0 && hash(1, 2) == 0x3c6f930d && value(1, 0, 1, 0) == 0.7782440185546875);

/// The tensor `name`, whose first elements must be those of `check/name`.
template <class T>
std::vector<T> generated(recording& recorded, const std::string& name, std::uint32_t stream, std::size_t size, double scale,
                         double offset) {
  std::vector<T> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = T(value(stream, std::uint32_t(i), scale, offset));
  const std::vector<double> first = recorded.tensor("check/" + name);
  compare<T>(name, std::span<const T>(out).first(first.size()), first, 0);
  return out;
}

// `settings`: of the recorded model.
template <class T>
std::vector<T> generated_inputs(recording& recorded, const nlohmann::json& settings, std::size_t size) {
  return generated<T>(recorded, "inputs", settings.at("inputs"), size, 0.5, 0.5);
}

template <class T>
std::vector<T> generated_parameter(recording& recorded, const nlohmann::json& settings, const std::string& name,
                                   std::size_t size) {
  const nlohmann::json& p = settings.at("parameters").at(name);
  return generated<T>(recorded, name, p.at("stream"), size, p.at("scale"), p.at("offset"));
}

inline std::vector<std::int32_t> generated_labels(recording& recorded, const nlohmann::json& settings, std::size_t size,
                                                  std::uint32_t classes) {
  std::vector<std::int32_t> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = std::int32_t(hash(settings.at("labels"), std::uint32_t(i)) % classes);
  const std::vector<std::int32_t> first = recorded.integers("check/labels");
  REQUIRE(std::equal(first.begin(), first.end(), out.begin()));
  return out;
}

}  // namespace strata::test
