// error: incomplete_model<.*executor_of_mine.*because<.*executors_have_finish_which_returns_metric_sums>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
template <class P>
struct executor_of_mine : test::complete_executor<P> {
  using test::complete_executor<P>::complete_executor;
#ifndef TWIN
  void finish();
#endif
};
using strategy_of_mine = test::complete_strategy<executor_of_mine>;
void train() { trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, strategy_of_mine{}}; }
