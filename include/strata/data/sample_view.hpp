// The contract of all stages before `batch`: they move sample numbers; rows() says what a number stands for.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/single_pass.hpp>
#include <utility>

namespace strata::data {

/// The number of a sample in its data set. from_tensor_slices refuses more than fit in.
using sample_index = std::uint32_t;

/// Where samples lie and how one is written into a batch. `write(i, ahead, x, then)` converts sample i to the type of x and
/// passes each number through `then`, so that element-wise stages such as scale cost no pass of their own. Meanwhile it may ask
/// the caches for the sample `ahead`, which comes a little later: the rows of a shuffled data set are misses that no hardware
/// foresees. Beside these: `label(i)` if the labels are sparse, `write_target(i, T*)` if they are dense.
template <class R>
concept row_source = std::copyable<R> && requires(const R& rows, sample_index i, float* x) {
  { R::sample_shape } -> std::convertible_to<shape>;
  { R::labels } -> std::convertible_to<label_kind>;
  { R::target_shape } -> std::convertible_to<shape>;
  { rows.size() } -> std::convertible_to<std::size_t>;
  rows.write(i, i, x, std::identity{});
  requires R::labels != label_kind::sparse || requires {
    { rows.label(i) } -> std::same_as<std::int32_t>;
  };
  requires R::labels != label_kind::dense || requires { rows.write_target(i, x); };
};

template <class V>
using rows_t = std::remove_cvref_t<decltype(std::declval<const V&>().rows())>;

/// A view of sample numbers. begin() starts the next epoch; set_epoch says which one that is.
template <class V>
concept sample_view = std::ranges::view<V> && std::ranges::input_range<V> &&
                      std::convertible_to<std::ranges::range_reference_t<V>, sample_index> && requires(V& v, int epoch) {
                        v.set_epoch(epoch);
                        requires row_source<rows_t<V>>;
                      };

namespace detail {
template <class V>
concept sized = requires(const V& view) {
  { view.size() } -> std::convertible_to<std::size_t>;
};
}  // namespace detail

/// The samples of V in their order, read through other rows: what scale, one_hot and check_finite return.
template <sample_view V, row_source Rows>
class rows_view : public std::ranges::view_base {
 public:
  rows_view(V base, Rows rows) : base_(std::move(base)), rows_(std::move(rows)) {}

  auto begin() { return std::ranges::begin(base_); }
  auto end() { return std::ranges::end(base_); }
  auto begin() const
    requires std::ranges::range<const V>
  {
    return std::ranges::begin(base_);
  }
  auto end() const
    requires std::ranges::range<const V>
  {
    return std::ranges::end(base_);
  }
  std::size_t size() const
    requires detail::sized<V>
  {
    return base_.size();
  }
  const Rows& rows() const { return rows_; }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }

 private:
  V base_;
  Rows rows_;
};

namespace detail {
/// Base of the stages that change which samples come, and in which order.
template <class Self, sample_view V>
class index_stage : public single_pass<Self> {
 public:
  decltype(auto) rows() const { return base_.rows(); }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }

 protected:
  explicit index_stage(V base) : base_(std::move(base)) {}

  V base_;
};

/// How far a stage has read the view before it.
template <class V>
struct position {
  std::optional<std::ranges::iterator_t<V>> at;

  void start(V& from) { at.emplace(std::ranges::begin(from)); }
  bool done(V& from) const { return *at == std::ranges::end(from); }
};
}  // namespace detail

}  // namespace strata::data
