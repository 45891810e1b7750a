// error: set_trainable: this strategy, such as parameter_server, trains all layers: write frozen<\.\.\.> around those that shall not change
#include "complete_models.hpp"

using namespace strata;

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
