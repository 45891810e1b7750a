// A sample that ignore_errors leaves out.
#pragma once
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/data/core/damage_report.hpp>
#include <utility>

namespace strata::data::detail {

/// Thrown by rows after ignore_errors. The caller skips the sample, and counts it in the order of the samples.
class left_out : public strata_error {
 public:
  left_out(const strata_error& why, std::shared_ptr<damage_report> report) : strata_error(why), report_(std::move(report)) {}

  void count() const { report_->add_sample(what()); }

 private:
  std::shared_ptr<damage_report> report_;
};

/// Calls f. Returns false, and counts the sample, if f accesses a sample that is left out.
template <class F>
bool unless_left_out(F&& f) {
  STRATA_TRY {
    f();
    return true;
  }
  STRATA_CATCH(const left_out& sample) {
    sample.count();
    return false;
  }
}

}  // namespace strata::data::detail
