// A training step whose sums are wanted while the device adds up those of all steps.
#pragma once
#include <strata/program/lost_steps.hpp>
#include <utility>

namespace strata::detail {

/// While it lives, an executor that keeps totals keeps none, so that a step returns its sums. tell() says to the engine whether
/// totals are kept. An error of it at the end is kept in `lost`, since the step may have ended with one already.
template <class Tell>
class without_totals {
  bool& keeps_totals_;
  lost_steps& lost_;
  Tell tell_;

 public:
  without_totals(bool& keeps_totals, lost_steps& lost, Tell tell)
      : keeps_totals_(keeps_totals), lost_(lost), tell_(std::move(tell)) {
    keeps_totals_ = false;
    lost_.keep_error_of(tell_);
  }
  without_totals(const without_totals&) = delete;
  without_totals& operator=(const without_totals&) = delete;
  ~without_totals() {
    keeps_totals_ = true;
    lost_.keep_error_of(tell_);
  }
};

}  // namespace strata::detail
