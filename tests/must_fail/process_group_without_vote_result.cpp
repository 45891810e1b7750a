// error: incomplete_model<.*group_of_mine.*because<.*process_groups_have_vote_and_vote_result>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct group_of_mine : fixed_membership {
  int rank() const { return 0; }
  int size() const { return 1; }
  bool is_chief() const { return true; }
  std::vector<double> gather(std::span<const double> values) { return {values.begin(), values.end()}; }
  void broadcast(std::span<std::byte>) {}
  void vote(bool) {}
#ifdef TWIN
  bool vote_result() const { return false; }
#endif
  void barrier() {}
};
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
  group_of_mine& group() { return group_; }
  const group_of_mine& group() const { return group_; }
  group_of_mine group_;
};
struct strategy_of_mine {
  static constexpr auto name = "strategy_of_mine";
  template <class P>
  using executor = executor_of_mine<P>;
  template <class P>
  executor_of_mine<P> make(typename P::optimizer o, std::uint64_t) const {
    return executor_of_mine<P>(o);
  }
};
void train() { trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, strategy_of_mine{}}; }
