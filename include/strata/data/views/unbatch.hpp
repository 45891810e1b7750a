// Converts batches back to samples.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/meta.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/sample.hpp>
#include <strata/data/core/single_pass.hpp>
#include <strata/data/core/stage_stream.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// The type in which a sample of a batch is stored. copy(batch, row, to) copies a row of a batch.
template <class B>
struct unbatched {
  using x = stored_tensor<batch_value_t<B>, B::sample_shape>;
  using y = std::conditional_t<B::labels == label_kind::sparse, std::int32_t, stored_tensor<batch_value_t<B>, B::target_shape>>;
  using type = std::conditional_t<B::labels == label_kind::none, x, sample<x, y>>;

  static void copy(const typename B::value_type& batch, std::size_t row, type& to) {
    constexpr std::size_t x_size{B::sample_shape.size()}, target_size{B::target_shape.size()};
    const auto* const from = batch.x() + row * x_size;
    if constexpr (B::labels == label_kind::none)
      std::copy_n(from, x_size, to.values.begin());
    else
      std::copy_n(from, x_size, to.x.values.begin());
    if constexpr (B::labels == label_kind::sparse) to.y = batch.labels()[row];
    if constexpr (B::labels == label_kind::dense)
      std::copy_n(batch.targets() + row * target_size, target_size, to.y.values.begin());
  }
};

template <class T, class Columns>
struct unbatched_columns;
template <class T, class... Node, shape... S, label_kind... Kind>
struct unbatched_columns<T, type_list<column_of<Node, S, Kind>...>> {
  template <label_kind K, shape E>
  using value = std::conditional_t<K == label_kind::sparse, std::int32_t, stored_tensor<T, E>>;
  using type = named_sample<column<Node, value<Kind, S>>...>;

  static void copy(const samples<T>& batch, std::size_t row, type& to) {
    int inputs = 0, outputs = 0;
    const auto copy = [&]<label_kind K>(std::integral_constant<label_kind, K>, auto& value) {
      if constexpr (K == label_kind::none)
        std::copy_n(batch.inputs[inputs++] + row * value.values.size(), value.values.size(), value.values.begin());
      else if constexpr (K == label_kind::sparse)
        value = batch.truths[outputs++].labels[row];
      else
        std::copy_n(batch.truths[outputs++].targets + row * value.values.size(), value.values.size(), value.values.begin());
    };
    (copy(std::integral_constant<label_kind, Kind>{}, static_cast<column<Node, value<Kind, S>>&>(to).values), ...);
  }
};
template <strata::detail::has_columns B>
struct unbatched<B> : unbatched_columns<batch_value_t<B>, typename B::columns> {};

/// The rows of batches, one by one.
template <batch_source B>
class unbatch_source {
 public:
  using element = typename unbatched<B>::type;

  explicit unbatch_source(B base) : base_(std::move(base)) {}

  void start(int epoch) {
    if constexpr (requires { base_.set_epoch(epoch); }) base_.set_epoch(epoch);
    state_.at.emplace(std::ranges::begin(base_));
    state_.row = 0;
  }
  bool next(element& e) {
    for (; *state_.at != std::ranges::end(base_); ++*state_.at, state_.row = 0) {
      const typename B::value_type batch = **state_.at;
      if (batch.truths[0].weights) throw_error("unbatch: the samples would lose their weights: put sample_weight after it");
      if (state_.row == static_cast<std::size_t>(batch.count)) continue;
      unbatched<B>::copy(batch, state_.row++, e);
      return true;
    }
    return false;
  }
  const B& base() const { return base_; }
  std::string order() const { return order_of_batches(base_, "unbatch"); }

 private:
  struct state {
    std::optional<std::ranges::iterator_t<B>> at;
    std::size_t row = 0;
  };

  B base_;
  own_state<state> state_;
};

struct unbatch_fn {
  template <std::ranges::range B>
  auto operator()(B view) const {
    constexpr bool right_view = is_batches<B>;
    static_assert(right_view, "data::unbatch takes a view of batches: put it after batch");
    if constexpr (batches<B>) {
      constexpr bool copies = std::copyable<B>;
      static_assert(copies, "data::unbatch takes batches whose source can be copied");
      if constexpr (copies) return stage_stream(unbatch_source<B>(std::move(view)));
    }
  }
};
}  // namespace detail

/// `train | batch<64> | map(mix_up) | unbatch | shuffle(1000) | batch<32>`: the samples of batches, with x and target in the
/// value type of the batch. Input range without a size. https://www.tensorflow.org/api_docs/python/tf/data/Dataset#unbatch
inline constexpr closure<detail::unbatch_fn> unbatch{};

}  // namespace strata::data
