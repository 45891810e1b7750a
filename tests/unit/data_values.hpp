// All elements of a view, in successive epochs.
#pragma once
#include <strata/data/views/elements.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::test {

template <class E>
class epochs_of {
 public:
  explicit epochs_of(E elements) : elements_(std::move(elements)) {}

  auto next() {
    std::vector<std::remove_cvref_t<decltype(*elements_.begin())>> values;
    for (const auto& e : elements_) values.push_back(e);
    return values;
  }

 private:
  E elements_;
};

/// The elements of the first epoch.
template <class V>
auto values(V view) {
  return epochs_of(std::move(view) | data::elements).next();
}

}  // namespace strata::test
