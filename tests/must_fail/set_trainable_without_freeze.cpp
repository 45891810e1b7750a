// error: set_trainable: some strategies, such as parameter_server, xla and tpu, train all layers: write frozen<\.\.\.> around those that shall not change
#include "complete_models.hpp"

using namespace strata;

template <class P>
struct servers : test::complete_executor<P> {
  using test::complete_executor<P>::complete_executor;
#ifdef TWIN
  void freeze(std::span<const bool>) {}
#endif
};

void check() {
  trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, test::complete_strategy<servers>{}};
  model.set_trainable("dense", false);
}
