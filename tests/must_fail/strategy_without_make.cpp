// error: incomplete_model<.*strategy_of_mine.*because<.*a_strategy_has_make_of_an_optimizer_and_a_seed>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
template <class P>
struct executor_of_mine : executor_defaults, counted_optimizer<typename P::optimizer> {
  explicit executor_of_mine(typename P::optimizer o) : counted_optimizer<typename P::optimizer>(o) {}
  void prepare(int, purpose) {}
  metric_sums<P> train_step(samples<float>) { return {}; }
  metric_sums<P> finish() { return {}; }
  metric_sums<P> evaluate_step(samples<float>) { return {}; }
  void predict(samples<float>, float*) {}
  std::span<float> parameters() { return {}; }
  std::span<const float> parameters() const { return {}; }
  void parameters_changed() {}
  solo_group& group() { return group_; }
  const solo_group& group() const { return group_; }
  solo_group group_;
};
struct strategy_of_mine {
  static constexpr auto name = "strategy_of_mine";
  template <class P>
  using executor = executor_of_mine<P>;
#ifdef TWIN
  template <class P>
  executor_of_mine<P> make(typename P::optimizer o, std::uint64_t) const {
    return executor_of_mine<P>(o);
  }
#endif
};
using whole = trainer<program<net, sparse_categorical_crossentropy<>, adam, type_list<>>, strategy_of_mine>;
bool check = sizeof(whole) > 0;
