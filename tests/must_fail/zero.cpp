// zero.
#include <strata/exchange/zero/zero.hpp>

// case: zero_2_with_batch_norm
// error: network_does_not_fit_zero<.*because<.*stages_2_and_3_compute_by_segments_which_batch_norm_does_not_allow_use_zero_1
// whole program
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<8>, batch_norm<>, activation<relu>, dense<10, softmax>>;
#ifdef TWIN
using stage = zero<1>;
#else
using stage = zero<2>;
#endif

void check(const in_process& processes) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, synchronous_among{processes, {}, {}, stage{}}};
  model.fit(data::synthetic_digits(100) | data::batch<32>, epochs(1));
}

// case: zero_with_adafactor
// error: optimizer_does_not_fit_zero<.*adafactor.*because<.*zero_cuts_matrices_of_which_it_needs_whole_rows_and_columns
// whole program
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using optimizer_of_mine = adam;
#else
using optimizer_of_mine = adafactor;
#endif

void check(const in_process& processes) {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, optimizer_of_mine{},
                sparse_categorical_crossentropy{}, synchronous_among{processes, {}, {}, zero<1>{}}};
  model.fit(data::synthetic_digits(100) | data::batch<32>, epochs(1));
}

// case: zero_without_such_a_stage
// error: wrong_stage_of_zero<7, .*because<.*zero_has_the_stages
#ifdef TWIN
constexpr strata::zero<1> what;
#else
constexpr strata::zero<7> what;
#endif
static_assert(what.stage >= 0);
