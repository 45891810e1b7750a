// The interfaces of fit for callbacks that save, restore or synchronise it; they do not depend on the program's type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <strata/state/named_array.hpp>
#include <strata/state/training_state.hpp>
#include <strata/train/any_process_group.hpp>
#include <strata/train/training_position.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// A fit whose state can be read, and replaced by that of an earlier run or of another process.
class resumable_fit {
 public:
  /// dense/kernel, optimizer/0/dense/kernel: a parameter, or a slot that the optimizer keeps for one.
  using array = named_array;

  /// The lines that must be equal before and after an interruption: optimizer, precision, seed, parameters, data set, ...
  virtual std::vector<std::string> description() const = 0;
  /// What must also be equal in a process that joins late: batches, epochs, steps.
  virtual std::string plan() const = 0;
  /// Bytes of one element of the arrays.
  virtual std::size_t element_size() const = 0;
  virtual std::vector<array> arrays() = 0;
  virtual training_position position() = 0;
  /// Continues from a position, with the current contents of the arrays.
  virtual void resume_at(const training_position&) = 0;
  /// Drops the rounding errors that bf16_gradients would add to the next step, so that the arrays and the position alone
  /// determine how the training continues. A collective call between the same two steps.
  virtual void drop_rounding_errors() = 0;
  /// Gathers sharded arrays in the chief. A collective call between the same two steps, before the chief reads arrays().
  virtual void collect_slices() {}

 protected:
  resumable_fit() = default;
  resumable_fit(const resumable_fit&) = default;
  ~resumable_fit() = default;
};
}  // namespace core

/// The argument of the hooks of a session_callback. Each uses the parts that it needs.
struct training_session {
  core::resumable_fit& fit;
  core::any_process_group& group;
  core::any_membership& membership;
  training_state& state;

  /// Keeps the object alive until fit is left, also by an exception.
  void keep(std::shared_ptr<void> object) { kept.push_back(std::move(object)); }

  std::vector<std::shared_ptr<void>> kept{};
};

}  // namespace strata
