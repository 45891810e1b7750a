// Definitions of fit_options.hpp.
#pragma once

namespace strata {

STRATA_FUNCTION class_weight::class_weight(std::initializer_list<std::pair<int, double>> weights) : weights_(weights) {}
STRATA_FUNCTION class_weight::class_weight(const class_weight& other) = default;
STRATA_FUNCTION class_weight::class_weight(class_weight&& other) noexcept = default;
STRATA_FUNCTION class_weight& class_weight::operator=(const class_weight& other) = default;
STRATA_FUNCTION class_weight& class_weight::operator=(class_weight&& other) noexcept = default;
STRATA_FUNCTION class_weight::~class_weight() = default;

STRATA_FUNCTION void class_weight::check(long classes) const {
  for (const auto& [index, weight] : weights_) {
    if (index < 0 || index >= classes)
      throw_error({"class_weight: there is no class ", index, ": classes are 0 to ", classes - 1});
    if (!(weight >= 0) || !std::isfinite(weight)) throw_error({"class_weight: the weight of class ", index, " is ", weight});
  }
}

STRATA_FUNCTION std::string class_weight::text() const {
  std::string out;
  for (const auto& [index, weight] : weights_)
    out += detail::formatted("%s%d: %.17g", out.empty() ? ", class_weight {" : ", ", index, weight);
  if (!out.empty()) out += '}';
  return out;
}

STRATA_FUNCTION double class_weight::of(int index) const {
  for (const auto& one : weights_)
    if (one.first == index) return one.second;
  return 1;
}

}  // namespace strata
