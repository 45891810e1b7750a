// Samples become batches: the one place where they are copied, converted and scaled.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/adaptor.hpp>
#include <strata/data/batch_buffer.hpp>
#include <strata/data/sample_view.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

/// Option of batch: leave out a last batch that is short.
struct drop_remainder {};

template <sample_view V, int N, std::floating_point T, bool DropRemainder>
class batch_view : public detail::single_pass<batch_view<V, N, T, DropRemainder>> {
  using rows = rows_t<V>;
  friend detail::single_pass<batch_view>;

 public:
  using value_type = samples<T>;
  static constexpr int batch_size = N;
  static constexpr shape sample_shape = rows::sample_shape;
  static constexpr label_kind labels = rows::labels;
  static constexpr shape target_shape = rows::target_shape;

  /// Throws strata::error if the view has fewer than N samples (if it has no size: at the first batch).
  explicit batch_view(V base) : base_(std::move(base)) {
    if constexpr (detail::sized<V>) refuse_fewer_than_a_batch(base_.size());
  }

  /// The number of batches.
  std::size_t size() const
    requires detail::sized<V>
  {
    return (base_.size() + (DropRemainder ? 0 : N - 1)) / N;
  }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }
  /// The next begin() goes on in an epoch whose first `batches` have been seen. They are passed over as numbers, not gathered.
  void resume_at(int epoch, std::size_t batches) {
    set_epoch(epoch);
    passed_over_ = batches * N;
  }

  /// For stages that own their buffers: start_epoch(), then fill() until the count is 0.
  void start_epoch() {
    state_.numbers.reserve(N + detail::rows_ahead);
    state_.numbers.clear();
    state_.written = 0;
    state_.start(base_);
    state_.taken = 0;
    for (; passed_over_ > 0 && !state_.done(base_); --passed_over_, ++state_.taken) ++*state_.at;
    passed_over_ = 0;
  }
  samples<T> fill(batch_buffer<T>& out) {
    std::vector<sample_index>& numbers = state_.numbers;
    numbers.erase(numbers.begin(), numbers.begin() + state_.written);
    for (; numbers.size() < N + detail::rows_ahead && !state_.done(base_); ++*state_.at) numbers.push_back(**state_.at);
    const std::size_t count = std::min<std::size_t>(N, numbers.size());
    state_.written = static_cast<std::ptrdiff_t>(count);
    if (count < N) {
      if (state_.taken == 0) refuse_fewer_than_a_batch(count);
      if (DropRemainder || count == 0) return {};
    }
    state_.taken += count;
    out.prepare(std::size_t{N} * std::size_t{sample_shape.size()}, labels == label_kind::sparse ? N : 0,
                labels == label_kind::dense ? std::size_t{N} * std::size_t{target_shape.size()} : 0);
    return detail::gather(base_.rows(), std::span<const sample_index>(numbers), count, out);
  }

 private:
  struct state : detail::position<V> {
    std::vector<sample_index> numbers;  // of the samples of a batch and of the next few
    std::ptrdiff_t written = 0;         // the first of them, which are done with
    batch_buffer<T> buffer;
    samples<T> current;
    std::size_t taken = 0;
  };

  void start() {
    start_epoch();
    next();
  }
  samples<T> read() const { return state_.current; }
  void next() { state_.current = fill(state_.buffer); }
  bool done() const { return state_.current.count == 0; }

  static void refuse_fewer_than_a_batch(std::size_t samples) {
    if (samples == 0) throw error("batch<" + std::to_string(N) + ">: the data set is empty");
    if (samples < N)
      throw error("batch<" + std::to_string(N) + ">: a batch of " + std::to_string(N) +
                  " samples is larger than the data set, which has " + std::to_string(samples));
  }

  V base_;
  std::size_t passed_over_ = 0;
  detail::own_state<state> state_;
};

namespace detail {
template <class... Options>
struct batch_value {
  using type = float;
};
template <std::floating_point T, class... Rest>
struct batch_value<T, Rest...> {
  using type = T;
};
template <class Option, class... Rest>
struct batch_value<Option, Rest...> : batch_value<Rest...> {};

template <int N, class... Options>
struct batch_fn {
  static_assert(N > 0, "batch<N> needs at least one sample");
  static_assert(((std::floating_point<Options> || std::same_as<Options, drop_remainder>) && ...),
                "options of batch are the type of its values (float, double) and drop_remainder");

  template <class V>
  auto operator()(V view) const {
    static_assert(sample_view<V>, "data::batch takes a view of samples, such as data::from_tensor_slices(...)");
    if constexpr (sample_view<V>)
      return batch_view<V, N, typename batch_value<Options...>::type, (std::same_as<Options, drop_remainder> || ...)>(
          std::move(view));
  }
};
}  // namespace detail

/// `batch<64>`, `batch<64, double>`, `batch<64, drop_remainder>`: N samples at a time, as rows of float unless an option says
/// otherwise; the last batch may be short. Models batch_source: input range, sized if the view is. A batch lives until the next
/// ++. Nothing is allocated after the first one. Throws strata::error if the data set has fewer than N samples.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
template <int N, class... Options>
inline constexpr adaptor<detail::batch_fn<N, Options...>> batch{};

}  // namespace strata::data
