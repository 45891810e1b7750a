// Optimizers, initializers, regularizers, and the gradient that they take.
#include <strata/concepts/device.hpp>
#include <strata/cpu/engine/rule_loops.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/optimizers/adafactor.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/sgd.hpp>
#include <tools/reduced.hpp>

using namespace strata;
using namespace strata::core;

// case: adafactor_with_norms_undeclared
// error: an optimizer with a parameterwise_rule or a factored_rule has .bool needs_norms.. const.
struct careless {
  static constexpr auto name = "careless";
  learning_rate_schedule learning_rate = 1e-3;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  int slots() const { return 1; }
#ifdef TWIN
  bool needs_norms() const { return true; }
#endif
  void validate() const {}
  template <class T>
  void with_rule(long, double, auto&& f) const {
    f(adafactor_rule<T>{});
  }
};
void step(const weight_update<float, careless>& update, const adafactor_rule<float>& rule,
          const global_gradient<float, host_device>& gradient) {
  update.run(rule, gradient, [](auto&& f) { f(0, 16); });
}

// case: initializer_without_fill
// error: wrong_option<.*at_index<2>.*by_layer<.*dense<10.*because<.*initializers_have_a_name_and_fill
// whole program
#include <strata/strata.hpp>

struct of_mine {
  static constexpr auto name = "of_mine";
};
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax, kernel_initializer<of_mine>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: optimizer_clips_a_local_gradient
// error: no matching function.*clip_by_value.*local_gradient
#include <strata/optimizers/clipping.hpp>
#include <tools/reduced.hpp>

float clip(local_gradient<float> sum) {
#ifdef TWIN
  return clip_by_value(reduced(sum, 64), 1.f).value();
#else
  return clip_by_value(sum, 1.f).value();
#endif
}

// case: optimizer_clips_a_local_gradient_by_norm
// error: no matching function.*clip_by_factor.*local_gradient
#include <strata/optimizers/clipping.hpp>
#include <tools/reduced.hpp>

float clip(local_gradient<float> sum) {
#ifdef TWIN
  return clip_by_factor(reduced(sum, 64), clipnorm_factor(4., 1.)).value();
#else
  return clip_by_factor(sum, clipnorm_factor(4., 1.)).value();
#endif
}

// case: optimizer_given_a_local_gradient
// error: (no match|no matching).*(local_gradient<float>.*reduced_gradient<V>|reduced_gradient.* against .local_gradient)
void step(const adam_rule<float>& rule, float& w, local_gradient<float> sum, float& m, float& v) {
#ifdef TWIN
  rule(w, reduced(sum, 64), m, v);
#else
  rule(w, sum, m, v);
#endif
}

// case: optimizer_reduces_by_itself
// error: (is private within this context|calling a private constructor).*reduced_gradient
void step(const sgd_rule<float>& rule, float& w, local_gradient<float> sum) {
#ifdef TWIN
  rule(w, reduced(sum, 64));
#else
  rule(w, reduced_gradient<float>{sum.sum / 64});
#endif
}

// case: optimizer_rule_of_local_gradients
// error: the rule of an optimizer is called with .V. weight, reduced_gradient<V>
struct careless {
  static constexpr int slots = 0;
  template <class V>
#ifdef TWIN
  void operator()(V& w, reduced_gradient<V> g) const {
    w -= g.value();
  }
#else
  void operator()(V& w, local_gradient<V> g) const {
    w -= g.sum;
  }
#endif
};
void step(float* w, float* const* leaves) { update_slice(careless{}, w, nullptr, reduced(leaves, 1, 64), {}, 0, 16); }

// case: optimizer_with_norms_undeclared
// error: an optimizer with a parameterwise_rule or a factored_rule has .bool needs_norms.. const.
struct careless {
  static constexpr auto name = "careless";
  learning_rate_schedule learning_rate = 1e-3;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  int slots() const { return 2; }
#ifdef TWIN
  bool needs_norms() const { return true; }
#endif
  void validate() const {}
  template <class T>
  void with_rule(long, double, auto&& f) const {
    f(lamb_rule<T>{});
  }
};
void step(const weight_update<float, careless>& update, const lamb_rule<float>& rule,
          const global_gradient<float, host_device>& gradient) {
  update.run(rule, gradient, [](auto&& f) { f(0, 16); });
}

// case: optimizer_without_validate
// error: incomplete_model<.*of_mine.*because<.*optimizers_have_validate_which_throws_for_wrong_settings>
// whole program
#include <strata/strata.hpp>

struct of_mine {
  static constexpr auto name = "of_mine";
  learning_rate_schedule learning_rate = 0.1;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  int slots() const { return 0; }
#ifdef TWIN
  void validate() const {}
#endif
  template <class T>
  void with_rule(long step, double rate, auto&& f) const {
    sgd{}.with_rule<T>(step, rate, f);
  }
};
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, of_mine{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: reduction_forgotten_by_a_parameter_server
// error: (cannot convert|could not convert|no (known|viable) conversion).*leaf_gradients.*global_gradient
#include <strata/parameter_server/contributions.hpp>
#include <strata/parameter_server/stored_shard.hpp>
#include <strata/strata.hpp>

using host = host_arithmetic<cpu>;
using shard = detail::stored_shard<float, sgd, host>;
void push(shard& kept, detail::single_contribution<float>& sent, const push_request& from, auto& read,
          const leaf_gradients<float, host_device>& computed) {
#ifdef TWIN
  kept.apply(sent.receive(from, kept.place().size(), kept.contents(), {}, read), kept.contents().rest(), from.learning_rate);
#else
  kept.apply(computed, kept.contents().rest(), from.learning_rate);
#endif
}
template void push(shard&, detail::single_contribution<float>&, const push_request&, void (*&)(float*, std::size_t),
                   const leaf_gradients<float, host_device>&);

// case: reduction_forgotten_by_a_step_at_once
// error: reduction_is_missing_between<strata::core::leaf_gradients<float, strata::core::host_device>, .*global_gradient<float, strata::core::host_device>
/// A piece of the gradient is updated as soon as the backward has it.
void on_piece(const weight_update<float, sgd>& update, const sgd_rule<float>& rule, float* const* array, long begin, long end) {
  const leaf_gradients<float, host_device> piece{array, 1, 0, 1, 1};
#ifdef TWIN
  update.apply(rule, whole_batch_reduction::reduce(piece, 1), begin, end);
#else
  update.apply(rule, piece, begin, end);
#endif
}

// case: reduction_forgotten_by_a_synchronous_executor
// error: (cannot convert|could not convert|no (known|viable) conversion).*leaf_gradients.*global_gradient
#include <strata/strata.hpp>

using net = sequential<input<4>, dense<2, softmax>>;
using engine_type = cpu_engine<program<net, sparse_categorical_crossentropy<>, sgd, type_list<>>, cpu>;
void step(engine_type& engine, const samples<float>& batch, const sgd& rules) {
  engine.begin(purpose::training, batch, philox{1}, 0, 2);
  engine.forward_backward(detail::no_callback{});
#ifdef TWIN
  engine.update(rules, 0, 0.1, whole_batch_reduction::reduce(engine.gradients(), batch.count));
#else
  engine.update(rules, 0, 0.1, engine.gradients());
#endif
}

// case: reduction_made_by_hand
// error: error: .*(is private within this context|is protected within this context|calling a (private|protected) constructor|is a (private|protected) member)
auto gradient_of(const leaf_gradients<float, host_device>& leaves, int samples) {
#ifdef TWIN
  return whole_batch_reduction::reduce(leaves, samples);
#else
  return gradient_reduction::reduced<host_device>(leaves.arrays, leaves.count, samples);
#endif
}

// case: regularizer_without_value
// error: wrong_option<.*at_index<2>.*by_layer<.*dense<10.*because<.*regularizers_are_l1_l2_or_l1_l2>
// whole program
#include <strata/strata.hpp>

struct of_mine {};
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax, kernel_regularizer<of_mine>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: reset_optimizer_without_slots
// error: reset_optimizer: the state of this optimizer is on parameter servers: restart them
#include "complete_models.hpp"

template <class P>
struct servers : test::complete_executor<P> {
  using test::complete_executor<P>::complete_executor;
#ifdef TWIN
  static constexpr executor_traits traits{.has_slots = true};
  std::span<float> slots() { return {}; }
  void drop_rounding_errors() {}
#endif
};

void check() {
  trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, test::complete_strategy<servers>{}};
  model.reset_optimizer();
}

// case: set_trainable_with_ema
// error: set_trainable: the optimizer ema averages the weights of all layers: write frozen<\.\.\.> around those that should not change
#include <strata/optimizers/ema.hpp>
#include <strata/strata.hpp>

#ifdef TWIN
using optimizer_of_mine = adam;
#else
using optimizer_of_mine = ema<adam>;
#endif

void check() {
  trainer model{sequential<input<8>, dense<10, softmax>>{}, optimizer_of_mine{adam{}}, sparse_categorical_crossentropy{}};
  model.set_trainable("dense", false);
}

// case: set_trainable_without_freeze
// error: set_trainable: this strategy, such as parameter_server, trains all layers: write frozen<\.\.\.> around those that should not change
#include "complete_models.hpp"

template <class P>
struct servers : test::complete_executor<P> {
  using test::complete_executor<P>::complete_executor;
#ifdef TWIN
  static constexpr executor_traits traits{.freezes = true};
  void freeze(std::span<const bool>) {}
#endif
};

void check() {
  trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, test::complete_strategy<servers>{}};
  model.set_trainable("dense", false);
}

// case: take_averages_of_adam
// error: take_averages: the optimizer keeps no averages: write ema\{adam\{\}\} instead of adam\{\}
#include <strata/strata.hpp>
#include <strata/train/take_averages.hpp>

#ifdef TWIN
using optimizer_of_mine = ema<adam>;
#else
using optimizer_of_mine = adam;
#endif

void check() {
  trainer model{sequential<input<8>, dense<10, softmax>>{}, optimizer_of_mine{adam{}}, sparse_categorical_crossentropy{}};
  take_averages(model);
}
