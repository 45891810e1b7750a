// error: reset_optimizer: the state of this optimizer is on parameter servers: start them anew
#include "complete_models.hpp"

using namespace strata;

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
