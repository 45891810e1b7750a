// Rows of a table by hand.
#include "run_kernel.hpp"
using namespace strata;
using namespace strata::test;

using three_of_four = run<operation_of<embedding<4, 2>>, shape{3}>;
static_assert(three_of_four::forward({{3, 0, 3}}, {{1, 2, 3, 4, 5, 6, 7, 8}}) == std::array<double, 6>{7, 8, 1, 2, 7, 8});
static_assert(three_of_four::dw<0>({{3, 0, 3}}, {1, 2, 3, 4, 50, 60}, {{}}) == std::array<double, 8>{3, 4, 0, 0, 0, 0, 51, 62});
static_assert(three_of_four::dw<0>({{3, 0, 3}}, {1, 2, 3, 4, 50, 60}, {{}}, 100) ==
              std::array<double, 8>{103, 104, 100, 100, 100, 100, 151, 162});

// Two samples of (2, 1).
using of_rank_2 = run<operation_of<embedding<3, 1>>, shape{2, 1}>;
static_assert(of_rank_2::out == shape{2, 1, 1});
static_assert(of_rank_2::forward<2>({{2, 1, 0, 2}}, {{10, 20, 30}}) == std::array<double, 4>{30, 20, 10, 30});
static_assert(of_rank_2::dw<0, 2>({{2, 1, 0, 2}}, {1, 2, 4, 8}, {{}}) == std::array<double, 3>{4, 2, 9});
