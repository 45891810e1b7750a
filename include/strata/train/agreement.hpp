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

/// The arguments of fit that must be equal in all processes, as doubles that can be gathered.
struct plan_of_fit {
  double batch_size = 0, batches = 0;  // batches of a pass; 0 if unknown
  double first_epoch = 0, epochs = 0, steps = 0;
  double learning_rate = 0;
  double weights = 0;     // a hash
  double order = 0;       // hash of the description of which samples come in which order
  double arithmetic = 0;  // hash of the arithmetic of the build

  friend bool operator==(const plan_of_fit&, const plan_of_fit&) = default;
};

/// Gathers a struct of doubles from each process, in the order of ranks; a collective call. It stores doubles, not structs: a
/// std::vector of each struct would be one more instantiation to compile.
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

/// Throws strata_error that names the difference if the plan of process `rank` differs from that of process 0. `order` is
/// that of this process.
void refuse_other_plan(const plan_of_fit& first, const plan_of_fit& other, std::size_t rank, std::string_view order);

/// Called before the first step: processes with different plans would wait for each other in vain, or train a mixture of two
/// plans. `order` describes which samples come in which order.
void refuse_other_plans(any_process_group& group, plan_of_fit mine, std::string_view order);

/// The check before an evaluation: the number of batches (0 if unknown) and the samples must be equal.
void refuse_other_batches(any_process_group& group, long batches, std::string_view order);

/// Called after an epoch: all processes stop if one of them stops, and continue with the learning rate of the chief.
void share_decisions(any_process_group& group, training_state& state);

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/train/agreement.ipp>
#endif
