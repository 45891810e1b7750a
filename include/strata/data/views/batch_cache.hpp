// cache after batch: stores each batch in memory when it is first made.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/sample_view.hpp>
#include <string>
#include <utility>

namespace strata::data {

/// The batches of the first epoch of B, in every epoch: each is made once and stored. Models batch_source; sized if B is. Once
/// one copy of the view has made all batches, all copies, including earlier ones, share them from their next pass on.
template <detail::batches B>
class batch_cache_view : public detail::batch_stage<batch_cache_view<B>, B> {
  using stage = detail::batch_stage<batch_cache_view, B>;
  friend stage;

 public:
  using typename stage::value_type;

  explicit batch_cache_view(B base) : stage(std::move(base)) {}
  batch_cache_view(batch_cache_view&&) = default;
  batch_cache_view& operator=(batch_cache_view&&) = default;
  batch_cache_view(const batch_cache_view& other) : stage(other), first_(other.first_) {}
  batch_cache_view& operator=(const batch_cache_view& other) { return *this = batch_cache_view(other); }

  std::size_t size() const
    requires detail::sized<B>
  {
    return this->base_.size();
  }
  void only_rows(core::row_choice) = delete;  // another pass may read other rows of the same batches
  std::string order() const { return "cache"; }
  std::string describe(core::data_position after, int count, int n) const
    requires detail::describes<B>
  {
    return stage::describe({0, after.samples}, count, n);
  }

 private:
  struct memory {
    std::deque<typename stage::buffer> buffers;
    std::deque<value_type> batches;
    bool complete = false;
  };
  /// The batches of the first copy that made all of them. Several threads may read copies.
  class first_to_end {
    enum class state { nothing, being_written, written };
    std::atomic<state> state_ = state::nothing;
    std::shared_ptr<memory> memory_;

   public:
    void set(const std::shared_ptr<memory>& complete) {
      state expected = state::nothing;
      if (!state_.compare_exchange_strong(expected, state::being_written)) return;
      memory_ = complete;
      state_.store(state::written, std::memory_order_release);
    }
    std::shared_ptr<memory> get() const {
      return state_.load(std::memory_order_acquire) == state::written ? memory_ : std::shared_ptr<memory>();
    }
  };

  core::data_position position_after(core::data_position) const {
    return {this->from().epoch, seen_ * detail::shards_of(this->base_)};
  }
  /// Throws strata_error if the pass would begin in the middle of a batch.
  void start_pass() {
    if (!memory_->complete)
      if (auto made = first_->get()) memory_ = std::move(made);
    if (!memory_->complete && !own_.is_reading) {  // at first, in a copy, and after an exception
      memory_->batches.clear(), memory_->buffers.clear();
      this->start_base({});
      own_.is_reading = true;
    }
    next_ = 0, seen_ = 0;
    const std::uint64_t shards = detail::shards_of(this->base_), samples = this->from().samples;
    while (seen_ * shards < samples && take().count > 0) {
    }
    if (seen_ * shards > samples)
      throw_error({"cache: an epoch cannot continue after ", samples, " samples, within a kept batch, which ends after ",
                   seen_ * shards, ": resume with the same size of batches"});
  }
  auto make(typename stage::buffer&) { return take(); }

  /// A stored batch, or a new one from the pass over B, which continues after the stored ones.
  value_type take() {
    if (next_ == memory_->batches.size() && !memory_->complete) make_one();
    if (next_ == memory_->batches.size()) return {};
    const value_type batch = memory_->batches[next_++];
    seen_ += static_cast<std::uint64_t>(batch.count);
    return batch;
  }
  void make_one() {
    own_.is_reading = false;  // set again when it has succeeded
    auto& own = memory_->buffers.emplace_back();
    value_type batch = this->next_of_base(own);
    own_.is_reading = true;
    memory_->complete = batch.count == 0;
    if (memory_->complete) {
      memory_->buffers.pop_back();
      return first_->set(memory_);
    }
    if (!own.holds(batch)) batch = detail::copy_batch<B>(batch, own, core::batch_size_of(this->base_));
    memory_->batches.push_back(batch);
  }

  struct pass_over_base {
    bool is_reading = false;
  };
  std::shared_ptr<memory> memory_ = std::make_shared<memory>();  // shared with other copies once it is complete
  std::shared_ptr<first_to_end> first_ = std::make_shared<first_to_end>();
  std::size_t next_ = 0;    // index of the batch in this pass
  std::uint64_t seen_ = 0;  // samples so far in this pass
  detail::own_state<pass_over_base> own_;
};

}  // namespace strata::data
