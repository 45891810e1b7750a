// What fit shows to callbacks that save, restore or synchronise it: a few small interfaces, independent of the program's type.
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

/// A fit whose state can be read, and replaced by that of an earlier run or of another process.
class resumable_fit {
 public:
  /// dense/kernel, optimizer/0/dense/kernel: a parameter, or a slot that the optimizer keeps for one.
  using array = named_array;

  /// What has to be equal before and after an interruption, in lines: optimizer, precision, seed, parameters, data set, ...
  virtual std::vector<std::string> description() const = 0;
  /// What has to be equal besides in a process that joins late: batches, epochs, steps.
  virtual std::string plan() const = 0;
  /// Bytes of one element of the arrays.
  virtual std::size_t element_size() const = 0;
  virtual std::vector<array> arrays() = 0;
  virtual training_position position() = 0;
  /// Continues from there, with the current contents of the arrays.
  virtual void resume_at(const training_position&) = 0;
  /// Drops the rounding errors that bf16_gradients would add to the next step, so that the arrays and the position alone decide
  /// how the training continues. All processes call it between the same two steps.
  virtual void drop_rounding_errors() = 0;
  /// Where each process keeps a slice of an array, the chief gets all of them. All processes call it between the same two steps,
  /// before the chief reads arrays().
  virtual void collect_slices() {}

 protected:
  resumable_fit() = default;
  resumable_fit(const resumable_fit&) = default;
  ~resumable_fit() = default;
};

/// What the hooks of a session_callback get. Each uses the parts that it needs.
struct training_session {
  resumable_fit& fit;
  any_process_group& group;
  any_membership& membership;
  training_state& state;

  /// The object lives until fit is left, also by an exception.
  void keep(std::shared_ptr<void> object) { kept.push_back(std::move(object)); }

  std::vector<std::shared_ptr<void>> kept{};
};

}  // namespace strata
