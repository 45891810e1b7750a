// Training steps that could not be computed where no exception could be thrown: at the end of an epoch that may already end with
// one.
#pragma once
#include <exception>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <utility>

namespace strata::detail {

/// Keeps the error of such steps until an executor can throw it.
class lost_steps {
  mutable std::optional<error> failure_;

 public:
  /// Calls f, which computes steps. Its error is kept.
  template <class F>
  void keep_error_of(F&& f) {
    STRATA_TRY { f(); }
    STRATA_CATCH(const std::exception& failure) {
      failure_ = error({"the last steps of an epoch were not computed: ", failure.what()});
    }
  }
  /// Throws the error that is kept, once.
  void report() const {
    if (failure_) [[unlikely]]
      throw_exception(*std::exchange(failure_, std::nullopt));
  }
};

}  // namespace strata::detail
