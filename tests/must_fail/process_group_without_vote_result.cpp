// error: incomplete_model<.*group_of_mine.*because<.*process_groups_have_vote_and_vote_result>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
struct group_of_mine : solo_group {
#ifndef TWIN
  void vote_result();
#endif
};
template <class P>
using executor_of_mine = test::complete_executor<P, group_of_mine>;
using strategy_of_mine = test::complete_strategy<executor_of_mine>;
void train() { trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, strategy_of_mine{}}; }
