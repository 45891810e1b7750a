// error: incomplete_model<.*strategy_of_mine.*because<.*a_strategy_has_make_of_an_optimizer_and_a_seed>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
template <class P>
using executor_of_mine = test::complete_executor<P>;
struct strategy_of_mine : test::complete_strategy<executor_of_mine> {
#ifndef TWIN
  void make();
#endif
};
using whole = trainer<program<test::small_net, sparse_categorical_crossentropy<>, adam, type_list<>>, strategy_of_mine>;
bool check = sizeof(whole) > 0;
