// What processes that train together have to agree on.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <strata/base/arithmetic.hpp>
#include <strata/base/error.hpp>
#include <strata/base/hash.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <strata/state/training_state.hpp>
#include <strata/train/any_process_group.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace strata::detail {

/// The arguments of fit that have to be equal in all processes, as numbers that can be gathered.
struct plan_of_fit {
  double batch_size = 0, batches = 0;  // batches of a pass; 0 if unknown
  double first_epoch = 0, epochs = 0, steps = 0;
  double learning_rate = 0;
  double weights = 0;     // a hash
  double order = 0;       // a hash of the text that tells which samples come in which order
  double arithmetic = 0;  // likewise, of the build

  friend bool operator==(const plan_of_fit&, const plan_of_fit&) = default;
};

/// A struct of doubles from each process, in the order of their ranks. All processes make one. It is no vector of structs, of
/// which the compiler would make one for each of them.
template <class Values>
class gathered {
  using numbers = std::array<double, sizeof(Values) / sizeof(double)>;
  std::vector<double> all_;

 public:
  gathered(any_process_group& group, const Values& mine) : all_(group.gather(std::bit_cast<numbers>(mine))) {}
  std::size_t size() const { return all_.size() / std::tuple_size_v<numbers>; }
  Values operator[](std::size_t rank) const {
    numbers one;
    std::copy_n(all_.data() + rank * one.size(), one.size(), one.data());
    return std::bit_cast<Values>(one);
  }
};

/// "batches of 64, 8 in a pass, epochs 0 to 5, steps_per_epoch 0": what has to be equal in a process that joins late.
std::string to_string(const plan_of_fit& p);

/// Throws strata::error if process `rank` has another plan than process 0, and says what differs. `order` is that of this
/// process.
void refuse_other_plan(const plan_of_fit& first, const plan_of_fit& other, std::size_t rank, std::string_view order);

/// Before the first step: processes with different plans would wait for each other in vain, or train a mixture of two plans.
/// `order` tells which samples come in which order.
void refuse_other_plans(any_process_group& group, plan_of_fit mine, std::string_view order);

/// The same before an evaluation: the number of batches, 0 if it is unknown, and the samples have to be equal.
void refuse_other_batches(any_process_group& group, long batches, std::string_view order);

/// After an epoch: all processes stop if one of them wants to, and continue with the learning rate of the chief.
void share_decisions(any_process_group& group, training_state& state);

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/train/agreement.ipp>
#endif
