// One optimizer and one rule that are complete, and one for each member that may be missing.
#include <strata/concepts/optimizer.hpp>
using namespace strata;
using namespace strata::core;

struct complete_rule {
  static constexpr int slots = 1;
  template <class V>
  void operator()(V&, reduced_gradient<V>, V&) const;
};
static_assert(optimizer_rule<complete_rule, float> && optimizer_rule<complete_rule, double>);

struct rule_of_local_gradients {
  static constexpr int slots = 1;
  template <class V>
  void operator()(V&, local_gradient<V>, V&) const;
};
struct rule_of_any_gradient {
  static constexpr int slots = 1;
  void operator()(auto&, auto, auto&) const;
};
struct rule_of_plain_numbers {
  static constexpr int slots = 1;
  template <class V>
  void operator()(V&, V, V&) const;
};
struct rule_without_slots {
  template <class V>
  void operator()(V&, reduced_gradient<V>) const;
};
struct rule_with_another_slot {
  static constexpr int slots = 2;
  template <class V>
  void operator()(V&, reduced_gradient<V>, V&) const;
};
struct rule_that_changes {
  static constexpr int slots = 1;
  template <class V>
  void operator()(V&, reduced_gradient<V>, V&);
};
struct rule_that_owns : complete_rule {
  rule_that_owns(const rule_that_owns&);
};
static_assert(!optimizer_rule<rule_of_local_gradients, float>);
static_assert(!optimizer_rule<rule_of_any_gradient, float>);
static_assert(!optimizer_rule<rule_of_plain_numbers, float>);
static_assert(!optimizer_rule<rule_without_slots, float>);
static_assert(!optimizer_rule<rule_with_another_slot, float>);
static_assert(!optimizer_rule<rule_that_changes, float>);
static_assert(!optimizer_rule<rule_that_owns, float>);

// A complete rule with norms.
struct complete_norm_rule {
  static constexpr int slots = 1;
  template <class V>
  V propose(const V&, reduced_gradient<V>, V&) const;
  float scale(const parameter_norms&) const;
  template <class V>
  void apply(V&, const V&, float) const;
};
struct norm_rule_with_slots_in_both_passes : complete_norm_rule {
  template <class V>
  void apply(V&, const V&, float, V&) const;
};
struct norm_rule_of_local_gradients : complete_norm_rule {
  template <class V>
  V propose(const V&, local_gradient<V>, V&) const;
};
struct norm_rule_without_direction : complete_norm_rule {
  template <class V>
  void propose(const V&, reduced_gradient<V>, V&) const;
};
struct norm_rule_without_scale : complete_norm_rule {
  void scale() const;
};
struct norm_rule_without_apply : complete_norm_rule {
  void apply() const;
};
struct norm_rule_that_changes : complete_norm_rule {
  template <class V>
  V propose(const V&, reduced_gradient<V>, V&);
};
static_assert(parameterwise_rule<complete_norm_rule, float> && optimizer_rule<complete_norm_rule, float>);
static_assert(parameterwise_rule<norm_rule_with_slots_in_both_passes, float>);
static_assert(!elementwise_rule<complete_norm_rule, float> && !parameterwise_rule<complete_rule, float>);
static_assert(!parameterwise_rule<norm_rule_of_local_gradients, float>);
static_assert(!parameterwise_rule<norm_rule_without_direction, float>);
static_assert(!parameterwise_rule<norm_rule_without_scale, float>);
static_assert(!parameterwise_rule<norm_rule_without_apply, float>);
static_assert(!parameterwise_rule<norm_rule_that_changes, float>);

struct complete_factored_rule {
  static constexpr int slots = 1;
  template <class V>
  V square(reduced_gradient<V>) const;
  template <class V>
  void follow(V&, const V&) const;
  template <class V>
  V propose(reduced_gradient<V>, const V&) const;
  float scale(const parameter_norms&) const;
  template <class V>
  void apply(V&, const V&, float) const;
};
struct factored_rule_of_local_gradients : complete_factored_rule {
  template <class V>
  V square(local_gradient<V>) const;
  template <class V>
  V propose(local_gradient<V>, const V&) const;
};
struct factored_rule_without_square : complete_factored_rule {
  void square() const;
};
struct factored_rule_without_follow : complete_factored_rule {
  void follow() const;
};
struct factored_rule_without_slots : complete_factored_rule {
  static constexpr int slots = 0;
};
static_assert(factored_rule<complete_factored_rule, float> && optimizer_rule<complete_factored_rule, float>);
static_assert(!parameterwise_rule<complete_factored_rule, float> && !factored_rule<complete_norm_rule, float>);
static_assert(!factored_rule<factored_rule_of_local_gradients, float>);
static_assert(!factored_rule<factored_rule_without_square, float>);
static_assert(!factored_rule<factored_rule_without_follow, float>);
static_assert(!factored_rule<factored_rule_without_slots, float>);

struct complete {
  static constexpr auto name = "complete";
  learning_rate_schedule learning_rate = 0.1;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  int slots() const;
  void validate() const;
  template <class T>
  void with_rule(long, double, auto&& f) const {
    f(complete_rule{});
  }
};
static_assert(optimizer<complete>);

// Hides a member of that name by one of the wrong type.
struct hidden {};
template <int>
struct without;
template <>
struct without<0> : complete {
  hidden name;
};
template <>
struct without<1> : complete {
  hidden learning_rate;
};
template <>
struct without<2> : complete {
  hidden weight_decay;
};
template <>
struct without<3> : complete {
  hidden clipnorm;
};
template <>
struct without<4> : complete {
  hidden clipvalue;
};
template <>
struct without<5> : complete {
  hidden global_clipnorm;
};
template <>
struct without<6> : complete {
  hidden slots;
};
template <>
struct without<7> : complete {
  hidden validate;
};
template <>
struct without<8> : complete {
  hidden with_rule;
};
static_assert(!optimizer<without<0>> && !optimizer<without<1>> && !optimizer<without<2>> && !optimizer<without<3>>);
static_assert(!optimizer<without<4>> && !optimizer<without<5>> && !optimizer<without<6>> && !optimizer<without<7>>);
static_assert(!optimizer<without<8>>);

struct that_cannot_be_copied : complete {
  that_cannot_be_copied(const that_cannot_be_copied&) = delete;
};
struct whose_slots_cannot_be_asked_of_a_constant : complete {
  int slots();
};
struct with_norms : complete {
  bool needs_norms() const;
};
static_assert(norm_optimizer<with_norms> && !norm_optimizer<complete> && optimizer<with_norms>);
static_assert(!optimizer<int> && !optimizer<that_cannot_be_copied> && !optimizer<whose_slots_cannot_be_asked_of_a_constant>);
