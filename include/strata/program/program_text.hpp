// A program as text: its network, loss, metrics and precision. Processes that train together compare it, so it is the same with
// every compiler.
#pragma once
#include <iterator>
#include <span>
#include <strata/base/numbers_of.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/program/program.hpp>
#include <string>
#include <type_traits>

namespace strata::detail {

/// "elu(0.5)": the name of an operation, an initializer or a metric with its settings.
[[gnu::cold]] inline std::string text_with_settings(const char* name, std::span<const double> numbers) {
  std::string text = name;
  for (std::size_t i = 0; i < numbers.size(); ++i) text += formatted("%s%.9g", i == 0 ? "(" : " ", numbers[i]);
  return numbers.empty() ? text : text + ")";
}

[[gnu::cold]] inline std::string extents_text(const shape& s) {
  std::string text;
  for (int axis = 0; axis < s.rank(); ++axis) text += formatted("%s%d", axis == 0 ? " " : "x", s[axis]);
  return text;
}

/// Each node with its shape, the nodes that it reads unless that is the node before it, and its parameters.
[[gnu::cold]] inline std::string text_of_tape(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                              std::span<const std::span<const double>> settings) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const tape_node& n = nodes[i];
    text += text_of({i == 0 ? "" : ", ", "node ", i, " "});
    text += text_with_settings(n.operation->name, settings[i]);
    text += extents_text(n.out);
    for (int k = 0; k < n.arity; ++k)
      if (n.arity > 1 || n.input[k] + 1 != int(i)) text += formatted("%s %d", k == 0 ? " of" : "", n.input[k]);
    for (const parameter_slot& slot : slots) {
      if (slot.node != int(i)) continue;
      const parameter& p = slot.what;
      text += text_of({", ", p.trainable ? "parameter " : "state ", p.name, extents_text(p.extents)});
      if (p.start) text += text_of({' ', text_with_settings(p.start->name, p.start->settings)});
      if (!p.regularizer.empty()) text += formatted(" l1 %.9g l2 %.9g", p.regularizer.l1, p.regularizer.l2);
    }
  }
  return text;
}

/// The parts of the program, joined by ", ".
template <class Program>
[[gnu::cold]] std::string text_of_program() {
  using T = typename Program::value_type;
  constexpr const auto& layout = layout_of_program<Program>;
  std::string text = text_of({"float", 8 * sizeof(T)});
  if (std::is_same_v<typename Program::precision, precision::mixed_bf16>) text += " with products of bf16";
  if (std::is_same_v<typename Program::precision, precision::tf32>) text += " with products of tf32";
  [&]<class... Node>(type_list<Node...>) {
    static constexpr std::span<const double> settings[] = {numbers_of<typename Node::operation>...};
    text +=
        text_of({", ", text_of_tape(tape_of<typename Program::items>.nodes, std::span(layout.slots, layout.count), settings)});
  }(node_types_of<typename Program::items>{});
  [&]<class... Metric>(type_list<Metric...>) {
    ((text += text_of({", metric ", text_with_settings(Metric::name, numbers_of<Metric>)})), ...);
  }(metrics_of_program<Program>{});
  return text;
}

/// ", learning_rate 0.1"; for a named schedule ", learning_rate cosine_decay 0.1, 0.0999 at step 1, 0.0998 at step 2, ...", at
/// powers of two. Other functions may be undefined for steps that are never reached, so only their first rate is included.
[[gnu::cold]] inline std::string text_of_learning_rate(const learning_rate_schedule& rate) {
  std::string text = text_of({", learning_rate ", rate.name(), *rate.name() ? " " : ""});
  text += formatted("%.9g", rate(0));
  for (long step = 1; *rate.name() && step <= (1L << 20); step *= 2) text += formatted(", %.9g at step %ld", rate(step), step);
  return text;
}

/// "optimizer sgd, learning_rate 0.1, momentum 0.9, ...".
template <class Optimizer>
[[gnu::cold]] std::string text_of_optimizer(const Optimizer& o) {
  std::string text = text_of({"optimizer ", Optimizer::name, ", ", o.slots(), " slots"});
  const auto add = [&](const optimizer_setting& s) { text += formatted(", %s %.9g", s.name, s.value); };
  text += text_of_learning_rate(o.learning_rate);
  if constexpr (requires { std::begin(o.settings()); })
    for (const optimizer_setting& s : o.settings()) add(s);
  add({"weight_decay", o.weight_decay});
  add({"clipnorm", o.clipnorm});
  add({"clipvalue", o.clipvalue});
  add({"global_clipnorm", o.global_clipnorm});
  return text;
}

}  // namespace strata::detail
