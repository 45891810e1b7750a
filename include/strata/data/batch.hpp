// Samples become batches: the one place where they are copied, converted and scaled.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/adaptor.hpp>
#include <strata/data/autotune.hpp>
#include <strata/data/batch_buffer.hpp>
#include <strata/data/gather.hpp>
#include <strata/data/gather_team.hpp>
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
  void set_epoch(int epoch) {
    epoch_ = epoch;
    passed_over_ = 0;
    state_.begun = false;
  }
  /// Behind the current batch.
  data_position where() const {
    const std::size_t shards = detail::shards_of(base_);
    return state_.begun ? data_position{state_.epoch, state_.taken * shards} : data_position{epoch_, passed_over_ * shards};
  }
  /// The next begin() goes on from there. What has been seen is passed over as numbers, not gathered. Throws strata::error if
  /// the workers would have to divide a sample among them.
  void resume_at(data_position from) {
    const std::size_t shards = detail::shards_of(base_);
    if (from.samples % shards != 0)
      throw error("batch: " + std::to_string(from.samples) + " samples of the epoch have been seen, which " +
                  std::to_string(shards) + " workers cannot share evenly");
    set_epoch(from.epoch);
    passed_over_ = static_cast<std::size_t>(from.samples) / shards;
  }

  /// Until the next choice, only these rows of each batch are written: the others hold anything.
  void only_rows(row_choice which)
    requires(!detail::leaves_out<rows>())
  {
    state_.wanted = std::move(which);
  }

  /// Until the next choice, these threads write the rows of each batch, where that is worth it.
  void written_by(row_writers who)
    requires(detail::any_thread_may_write<rows>())
  {
    if constexpr (N * (sample_shape.size() + target_shape.size()) * sizeof(T) >= detail::bytes_worth_sharing)
      state_.writers = std::move(who);
  }

  const V& base() const { return base_; }

  /// For stages that own their buffers: start_epoch(), then fill() until the count is 0.
  void start_epoch() {
    state_.numbers.resize(N + detail::rows_ahead);
    state_.known = 0;
    detail::release_all(base_.rows());
    state_.begun = true;
    state_.epoch = epoch_++;
    if (state_.tuner) state_.tuner->pause();
    base_.set_epoch(state_.epoch);
    state_.start(base_);
    state_.taken = 0;
    for (; passed_over_ > 0 && !state_.done(base_); --passed_over_, ++state_.taken, ++*state_.at)
      detail::release(base_.rows(), **state_.at);
    passed_over_ = 0;
  }
  samples<T> fill(batch_buffer<T>& out) {
    const int threads = threads_for_this_batch();
    const bool is_first = state_.taken == 0;
    std::size_t filled = 0;
    do {  // once, unless samples are left out
      const std::size_t missing = N - filled, known = look_ahead(missing + detail::rows_ahead);
      const std::size_t count = std::min(missing, known);
      if (count < missing && !is_first && (DropRemainder || filled + count == 0)) return {};
      out.prepare(std::size_t{N} * std::size_t{sample_shape.size()}, labels == label_kind::sparse ? N : 0,
                  labels == label_kind::dense ? std::size_t{N} * std::size_t{target_shape.size()} : 0);
      const std::span<const sample_index> numbers(state_.numbers.data(), known);
      const row_range wanted = state_.wanted ? state_.wanted(static_cast<int>(count)) : row_range{0, static_cast<int>(count)};
      filled = detail::gather(base_.rows(), numbers, count, static_cast<std::size_t>(wanted.begin), static_cast<std::size_t>(wanted.end),
                              out, filled, state_.team.get(), threads, state_.writers);
      state_.taken += count;
      for (const sample_index i : numbers.first(count)) detail::release(base_.rows(), i);
      std::copy(numbers.data() + count, numbers.data() + known, state_.numbers.data());
      state_.known = known - count;
    } while (filled < N && state_.known > 0);
    if (filled < N) {
      if (is_first) refuse_fewer_than_a_batch(filled);
      if (DropRemainder) return {};
    }
    return {.x = out.x(), .labels = out.labels(), .targets = out.targets(), .count = static_cast<int>(filled)};
  }

 private:
  struct state : detail::position<V> {
    std::vector<sample_index> numbers;  // room for those of the samples of a batch and of the next few
    std::size_t known = 0;              // so many of them
    batch_buffer<T> buffer;
    samples<T> current;
    bool begun = false;
    int epoch = 0;
    std::size_t taken = 0;                      // samples of this epoch
    row_choice wanted;                          // empty: all rows
    row_writers writers;                        // empty: the caller
    std::unique_ptr<detail::gather_team> team;  // once there is more than one thread
    std::optional<detail::thread_tuner> tuner;  // with autotune
  };

  void start() {
    start_epoch();
    next();
  }
  samples<T> read() const { return state_.current; }
  void next() {
    state_.current = {};  // the end of the pass, if fill throws
    state_.current = fill(state_.buffer);
  }
  bool done() const { return state_.current.count == 0; }

  /// Reads on until so many numbers are known, if there are as many; returns how many are.
  std::size_t look_ahead(std::size_t wanted) {
    std::size_t known = state_.known;
    sample_index* const numbers = state_.numbers.data();
    for (; known < wanted && !state_.done(base_); ++*state_.at) numbers[known++] = **state_.at;
    return state_.known = known;
  }
  int threads_for_this_batch() {
    int threads = detail::parallelism(base_.rows());
    if (threads == 0) {
      if (!state_.tuner) state_.tuner.emplace();
      threads = state_.tuner->threads_for_next_batch();
    }
    if (threads > 1 && !state_.team) state_.team = std::make_unique<detail::gather_team>();
    return threads;
  }

  static void refuse_fewer_than_a_batch(std::size_t samples) {
    if (samples == 0) throw error("batch<" + std::to_string(N) + ">: the data set is empty");
    if (samples < N)
      throw error("batch<" + std::to_string(N) + ">: a batch of " + std::to_string(N) +
                  " samples is larger than the data set, which has " + std::to_string(samples));
  }

  V base_;
  int epoch_ = 0;  // the next one
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
    constexpr bool holds_samples = sample_view<V>;
    static_assert(holds_samples, "data::batch takes a view of samples, such as data::from_tensor_slices(...)");
    if constexpr (holds_samples)
      return batch_view<V, N, typename batch_value<Options...>::type, (std::same_as<Options, drop_remainder> || ...)>(
          std::move(view));
  }
};
}  // namespace detail

/// `batch<64>`, `batch<64, double>`, `batch<64, drop_remainder>`: N samples at a time, as rows of float unless an option says
/// otherwise; the last batch may be short. Models batch_source: input range, sized if the view is. A batch lives until the next
/// ++. Nothing is allocated after the first one. If a stage asks for it, several threads write a batch (see parallel); they live
/// as long as the view and sleep between batches. Otherwise the threads of a training write it if its rows lie in an array, or
/// else the caller alone. What a stage throws arrives at begin() or ++ as it is, the first in the order of the samples if there
/// are several, and ends the pass; the next begin() starts the next epoch. Throws strata::error if the data set has fewer than N
/// samples. https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
template <int N, class... Options>
inline constexpr adaptor<detail::batch_fn<N, Options...>> batch{};

}  // namespace strata::data
