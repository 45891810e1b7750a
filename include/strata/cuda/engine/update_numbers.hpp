// The values of an update that change from step to step.
#pragma once
#include <cstddef>
#include <cstring>
#include <strata/concepts/optimizer.hpp>
#include <type_traits>

namespace strata::core {

/// The values that change from step to step: the rule of an optimizer, and weight_decay times the learning rate. Kernels read
/// them from memory of the device, so that a graph can be launched again with other values.
template <class T>
struct update_numbers {
  alignas(16) std::byte rule[192];
  T weight_decay;

  template <class Optimizer>
  static update_numbers of(const Optimizer& rules, long step, double rate) {
    update_numbers now{};
    now.weight_decay = T(rules.weight_decay * rate);
    rules.template with_rule<T>(step, rate, [&]<class Rule>(const Rule& its_rule) {
      static_assert(std::is_trivially_copyable_v<Rule> && sizeof(Rule) <= sizeof now.rule, "a rule is a few numbers");
      std::memcpy(now.rule, &its_rule, sizeof its_rule);
    });
    return now;
  }
  template <class Rule>
  constexpr const Rule& rule_as() const {
    return *static_cast<const Rule*>(static_cast<const void*>(rule));
  }
};

}  // namespace strata::core
