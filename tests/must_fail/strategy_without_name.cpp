// error: incomplete_model<.*strategy_of_mine.*because<.*a_strategy_is_copyable_and_has_a_name>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
template <class P>
using executor_of_mine = test::complete_executor<P>;
struct strategy_of_mine : test::complete_strategy<executor_of_mine> {
#ifndef TWIN
  void name();
#endif
};
void train() { trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, strategy_of_mine{}}; }
