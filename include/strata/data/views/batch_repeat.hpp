// repeat after batch.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/rows.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
inline int checked_repeat_count(int count) {
  if (count < 1) throw_error({"repeat: count is ", count, ", it must be at least 1"});
  return count;
}
}  // namespace detail

/// Several passes over the batches of B as one; each ends with a short batch if B does. Epoch e consists of the epochs
/// e * count ... e * count + count - 1 of B. Models batch_source; sized if B is.
template <detail::batches B>
class batch_repeat_view : public detail::batch_stage<batch_repeat_view<B>, B> {
  using stage = detail::batch_stage<batch_repeat_view, B>;
  friend stage;
  static constexpr bool tells_position = detail::sized<B> && detail::resumable<B>;

 public:
  batch_repeat_view(B base, int count) : stage(std::move(base)), count_(detail::checked_repeat_count(count)) {}

  std::size_t size() const
    requires detail::sized<B>
  {
    return static_cast<std::size_t>(count_) * this->base_.size();
  }
  std::string order() const { return detail::order_of_batches(this->base_, strata::detail::text_of({"repeat(", count_, ")"})); }
  /// Each pass counts as full batches, so that positions in different passes differ. Unlike other positions, such a position
  /// holds for one batch size only.
  core::data_position where() const
    requires tells_position
  {
    return stage::where();
  }
  void resume_at(core::data_position from)
    requires tells_position
  {
    stage::resume_at(from);
  }
  std::string describe(core::data_position after, int count, int n) const
    requires(tells_position && detail::describes<B>)
  {
    const std::uint64_t pass = (after.samples - 1) / samples_of_a_pass();
    return stage::describe({after.epoch * count_ + int(pass), after.samples - pass * samples_of_a_pass()}, count, n);
  }

 private:
  core::data_position position_after(core::data_position of_base) const {
    return {this->from().epoch, static_cast<std::uint64_t>(pass_) * samples_of_a_pass() + of_base.samples};
  }
  void start_pass() {
    const core::data_position from = this->from();
    std::uint64_t samples = 0;
    pass_ = 0;
    if constexpr (tells_position) {
      const std::uint64_t each = std::max<std::uint64_t>(1, samples_of_a_pass());
      pass_ = static_cast<int>(std::min<std::uint64_t>(from.samples / each, static_cast<std::uint64_t>(count_ - 1)));
      samples = from.samples - static_cast<std::uint64_t>(pass_) * each;
    }
    this->start_base({from.epoch * count_ + pass_, samples});
  }
  auto make(typename stage::buffer& out) {
    auto batch = this->next_of_base(out);
    while (batch.count == 0 && pass_ + 1 < count_) {
      ++pass_;
      this->start_base({this->from().epoch * count_ + pass_, 0});
      batch = this->next_of_base(out);
    }
    return batch;
  }
  std::uint64_t samples_of_a_pass() const { return this->samples_in(this->base_.size()); }

  int count_, pass_ = 0;
};

}  // namespace strata::data
