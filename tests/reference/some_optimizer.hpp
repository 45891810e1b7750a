// Any optimizer as one type, so that a program is compiled once for all of them.
#pragma once
#include <strata/optimizers/adadelta.hpp>
#include <strata/optimizers/adafactor.hpp>
#include <strata/optimizers/adagrad.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/adamax.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/nadam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/sgd.hpp>
#include <variant>

#include "unit/gradient_check.hpp"

namespace strata::test {
using namespace core;

struct some_optimizer {
  static constexpr auto name = "some_optimizer";
  std::variant<keep_gradient, sgd, rmsprop, adam, adamw, lamb, nadam, adamax, adagrad, adadelta, lion, ftrl, adafactor> which;
  learning_rate_schedule learning_rate;
  double weight_decay, clipnorm, clipvalue, global_clipnorm;

  template <class Optimizer>
    requires(!std::same_as<Optimizer, some_optimizer>)
  some_optimizer(const Optimizer& o)
      : which(o),
        learning_rate(o.learning_rate),
        weight_decay(o.weight_decay),
        clipnorm(o.clipnorm),
        clipvalue(o.clipvalue),
        global_clipnorm(o.global_clipnorm) {}

  int slots() const {
    return std::visit([](const auto& o) { return o.slots(); }, which);
  }
  bool needs_norms() const {
    return std::visit([](const auto& o) { return norm_optimizer<decltype(o)>; }, which);
  }
  void validate() const {
    std::visit([](const auto& o) { o.validate(); }, which);
  }
  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    std::visit([&](const auto& o) { o.template with_rule<T>(step, rate, f); }, which);
  }
};

}  // namespace strata::test
