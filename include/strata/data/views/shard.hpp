// The share of the samples of one of several workers.
#pragma once
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/index_stage.hpp>
#include <string>
#include <utility>

namespace strata::data {

template <element_view V>
class shard_view : public detail::index_stage<shard_view<V>, V> {
  friend detail::single_pass<shard_view>;

 public:
  shard_view(V base, std::size_t shards, std::size_t index)
      : detail::index_stage<shard_view, V>(std::move(base)), shards_(shards), index_(index) {
    if (index >= shards) throw_error({"shard: index ", index, " is not below the number of shards, ", shards});
    if constexpr (detail::sized<V>)
      if (this->base_.size() < shards)
        throw_error({"shard: ", this->base_.size(), " elements are too few for ", shards, " shards"});
  }

  std::size_t size() const
    requires detail::sized<V>
  {
    return (this->base_.size() + shards_ - 1 - index_) / shards_;
  }
  std::size_t shards() const { return shards_; }

 private:
  void start() {
    state_.start(this->base_);
    skip(index_);
  }
  sample_index read() const { return **state_.at; }
  void next() {
    ++*state_.at;
    skip(shards_ - 1);
  }
  bool done() { return state_.done(this->base_); }

  void skip(std::size_t count) {
    for (; count > 0 && !done(); --count, ++*state_.at) detail::release(this->rows(), **state_.at);
  }

  std::size_t shards_, index_;
  detail::own_state<detail::position<V>> state_;
};

namespace detail {
struct shard_fn {
  template <std::ranges::range V>
  auto operator()(V view, std::size_t shards, std::size_t index) const {
    constexpr bool right_view = is_element_view<V>;
    static_assert(right_view, "data::shard takes a view of samples or elements: put it before batch");
    if constexpr (element_view<V>) {
      constexpr bool same = same_on_all_workers<V>();
      static_assert(same,
                    "each worker would shuffle by itself, and shards would overlap: put data::shard before data::shuffle, or "
                    "write data::shuffle(buffer_size, data::shared_seed{1})");
      if constexpr (same) return shard_view<V>(std::move(view), shards, index);
    }
  }
  constexpr auto operator()(std::size_t shards, std::size_t index) const { return detail::partial(*this, shards, index); }
};
}  // namespace detail

/// `shard(4, 0)`: the first of every 4 samples, for worker 0 of 4. Each sample belongs to exactly one shard; the sizes of shards
/// differ by at most one. A shuffle before it needs a shared_seed. Input range; sized if the view is. Throws strata_error
/// if the index is not below the number of shards, or if the view is known to have fewer elements than there are shards.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shard
inline constexpr detail::shard_fn shard{};

}  // namespace strata::data
