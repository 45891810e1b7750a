// map after batch: a user's function changes batches in place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_buffer.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/function.hpp>
#include <strata/data/core/rows.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// The argument of a function that maps batches: samples 0 ... count - 1, which it may change. Copies refer to the same values.
template <class T, shape S, label_kind Labels, shape Target>
class mutable_batch {
 public:
  using value_type = T;
  static constexpr shape sample_shape = S, target_shape = Target;

  mutable_batch(detail::batch_buffer<T>& buffer, int count, std::size_t number, int epoch)
      : x_(buffer.x()), labels_(buffer.labels()), targets_(buffer.targets()), count_(count), number_(number), epoch_(epoch) {}

  int count() const { return count_; }
  /// The index of the batch in its epoch, from 0. Random numbers keyed by number and epoch are the same in each run.
  std::size_t number() const { return number_; }
  int epoch() const { return epoch_; }

  // Members for sample k.

  tensor<T, S> x(int k) const { return {x_ + std::ptrdiff_t{k} * S.size()}; }
  std::int32_t& label(int k) const
    requires(Labels == label_kind::sparse)
  {
    return labels_[k];
  }
  tensor<T, Target> target(int k) const
    requires(Labels == label_kind::dense)
  {
    return {targets_ + std::ptrdiff_t{k} * Target.size()};
  }

  // Arrays of all samples, row after row.

  std::span<T> x() const { return {x_, rows() * std::size_t{S.size()}}; }
  std::span<std::int32_t> labels() const
    requires(Labels == label_kind::sparse)
  {
    return {labels_, rows()};
  }
  std::span<T> targets() const
    requires(Labels == label_kind::dense)
  {
    return {targets_, rows() * std::size_t{Target.size()}};
  }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(count_); }

  T* x_;
  std::int32_t* labels_;
  T* targets_;
  int count_;
  std::size_t number_;
  int epoch_;
};

namespace detail {
template <batches B>
using mutable_batch_of = mutable_batch<batch_value_t<B>, B::sample_shape, B::labels, B::target_shape>;
}  // namespace detail

/// The batches of B, changed by f. Models batch_source; sized if B is.
template <detail::batches B, class F>
class batch_map_view : public detail::batch_stage<batch_map_view<B, F>, B> {
  using stage = detail::batch_stage<batch_map_view, B>;
  friend stage;

 public:
  batch_map_view(B base, F f) : stage(std::move(base)), f_(std::move(f)) {}

  std::size_t size() const
    requires detail::sized<B>
  {
    return this->base_.size();
  }
  void only_rows(core::row_choice) = delete;  // f reads whole batches
  std::string order() const { return "map"; }

 private:
  void start_pass() {
    number_ = this->batches_in(this->from().samples);
    this->start_base(this->from());
  }
  auto make(typename stage::buffer& out) {
    auto batch = this->next_of_base(out);
    if (batch.count == 0) return batch;
    if (!out.holds(batch)) batch = detail::copy_batch<B>(batch, out, core::batch_size_of(this->base_));
    STRATA_TRY {
      detail::mutable_batch_of<B> argument(out, batch.count, number_, this->from().epoch);
      (*f_)(argument);
    }
    STRATA_CATCH(const std::exception& failure) { throw_error({"map: batch ", number_, ": ", failure.what()}); }
    ++number_;
    return batch;
  }

  detail::function<F> f_;
  std::size_t number_ = 0;
};

}  // namespace strata::data
