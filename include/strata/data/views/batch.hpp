// Groups samples into batches: the one place where they are copied, converted and scaled.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/grown_array.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/data/core/autotune.hpp>
#include <strata/data/core/batch_buffer.hpp>
#include <strata/data/core/batch_extent.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/gather.hpp>
#include <strata/data/core/gather_team.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/named_buffer.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/single_pass.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// Option of batch: drops the last batch if it is short.
struct drop_remainder {};

namespace detail {

inline std::size_t checked_batch_size(int n) {
  if (n < 1) throw_error({"batch(", n, "): a batch has at least one sample"});
  return static_cast<std::size_t>(n);
}

/// The part of batch that does not depend on the batch size: pipelines that differ only in that size share it.
template <element_view V, std::floating_point T>
class batch_maker {
  using rows = rows_t<V>;
  using memory = typename buffer_for<T, rows>::type;

 protected:
  static constexpr row_properties properties = rows::properties;
  static constexpr bool gives_indices = has_stored<rows> && !has_weight<rows>;
  static_assert(!(has_weight<rows> && properties.leaves_out), "samples that may be left out have no weights");

  batch_maker(V&& base, std::size_t batch_size, const char* brackets, bool drops_remainder)
      : base_(std::move(base)), batch_size_(batch_size), brackets_(brackets), drops_remainder_(drops_remainder) {
    if constexpr (sized<V>) refuse_fewer_than_a_batch(base_.size());
  }

 public:
  void set_epoch(int epoch) {
    epoch_ = epoch;
    to_skip_ = 0;
    state_.begun = false;
  }
  /// The position after the current batch.
  data_position where() const {
    const std::size_t shards = shards_of(base_);
    return state_.begun ? data_position{state_.epoch, state_.taken * shards} : data_position{epoch_, to_skip_ * shards};
  }
  /// Sets the position from which the next begin() continues. Samples before the position are skipped as indices, not gathered.
  /// Throws strata_error if the number of workers does not divide the number of samples.
  [[gnu::cold]] void resume_at(data_position from) {
    const std::size_t shards = shards_of(base_);
    if (from.samples % shards != 0)
      throw_error(
          {"batch: ", from.samples, " samples of the epoch have been seen, which ", shards, " workers cannot share evenly"});
    set_epoch(from.epoch);
    to_skip_ = static_cast<std::size_t>(from.samples) / shards;
  }

  /// Names sample n of a batch of `count` that ends at position `after`. Reads the indices of that pass again, from a copy.
  [[gnu::cold]] std::string describe(data_position after, int count, int n) const
    requires(!properties.leaves_out && !reads_stream<V>() && std::copyable<V>)
  {
    V again(base_);
    again.set_epoch(after.epoch);
    auto left = std::ptrdiff_t(after.samples / shards_of(base_)) - count + n;
    auto at = std::ranges::begin(again);
    while (at != std::ranges::end(again) && left-- > 0) ++at;
    return at == std::ranges::end(again) ? std::string() : detail::describe(again.rows(), *at);
  }

  /// From now on only these rows of each batch are written; the others are not initialised.
  void only_rows(row_choice which)
    requires(!properties.leaves_out)
  {
    state_.wanted = std::move(which);
  }

  /// From now on these threads write the rows of each batch if it is large enough.
  void written_by(row_writers who)
    requires(properties.any_thread_may_write)
  {
    if (batch_size_ * numbers_of_sample<rows> * sizeof(T) >= bytes_worth_sharing) state_.writers = std::move(who);
  }

  /// The data set in memory, if it is stored there.
  std::optional<stored_samples> stored() const
    requires gives_indices
  {
    return base_.rows().stored();
  }
  /// Makes the batches of the next pass, and of no other, the indices of their samples.
  void by_index()
    requires gives_indices
  {
    state_.wants_indices = true;
  }

  const V& base() const { return base_; }
  bool drops_remainder() const { return drops_remainder_; }

  /// For stages that own their buffers: start_epoch(), then fill() until the count is 0.
  [[gnu::cold]] void start_epoch() {
    state_.indices.grow(batch_size_ + rows_ahead);
    state_.known = 0;
    release_all(base_.rows());
    state_.begun = true;
    state_.epoch = epoch_++;
    state_.by_index = std::exchange(state_.wants_indices, false);
    if (state_.tuner) state_.tuner->pause();
    base_.set_epoch(state_.epoch);
    state_.start(base_);
    state_.taken = 0;
    for (; to_skip_ > 0 && !state_.done(base_); --to_skip_, ++state_.taken, ++*state_.at) release(base_.rows(), **state_.at);
    to_skip_ = 0;
  }
  samples<T> fill(memory& out) {
    if constexpr (gives_indices)
      if (state_.by_index) return fill_indices(out);
    const int threads = threads_for_this_batch();
    const bool is_first = state_.taken == 0;
    std::size_t filled = 0;
    do {  // once, unless samples are left out
      const std::size_t missing = batch_size_ - filled, known = look_ahead(missing + rows_ahead);
      const std::size_t count = std::min(missing, known);
      if (count < missing && !is_first && (drops_remainder_ || filled + count == 0)) return {};
      if constexpr (named_source<rows>) {
        out.prepare(batch_size_);
      } else {
        using sizes = sizes_of_sample<rows>;
        out.prepare(batch_size_ * sizes::x, batch_size_ * sizes::label, batch_size_ * sizes::target);
      }
      const std::span<const sample_index> indices(state_.indices.data(), known);
      const row_range wanted = state_.wanted ? state_.wanted(static_cast<int>(count)) : row_range{0, static_cast<int>(count)};
      filled = gather(base_.rows(), indices, count, static_cast<std::size_t>(wanted.begin), static_cast<std::size_t>(wanted.end),
                      out, filled, state_.team.get(), threads, state_.writers);
      state_.taken += count;
      if constexpr (has_weight<rows>) {
        T* const weights = out.weights(batch_size_);
        for (std::size_t k = std::size_t(wanted.begin); k < std::size_t(wanted.end); ++k)
          weights[k] = static_cast<T>(base_.rows().weight(indices[k]));
      }
      for (const sample_index i : indices.first(count)) release(base_.rows(), i);
      std::copy(indices.data() + count, indices.data() + known, state_.indices.data());
      state_.known = known - count;
    } while (filled < batch_size_ && state_.known > 0);
    if (filled < batch_size_) {
      if (is_first) refuse_fewer_than_a_batch(filled);
      if (drops_remainder_) return {};
    }
    if constexpr (named_source<rows>)
      return out.batch(has_weight<rows> ? out.weights(batch_size_) : nullptr, static_cast<int>(filled));
    else
      return {out.x(),
              {out.labels(), out.targets(), has_weight<rows> ? out.weights(batch_size_) : nullptr},
              static_cast<int>(filled)};
  }

 protected:
  [[gnu::cold]] void start() {
    start_epoch();
    next();
  }
  samples<T> read() const { return state_.current; }
  void next() {
    state_.current = {};  // the pass ends here if fill throws
    state_.current = fill(state_.buffer);
  }
  bool done() const { return state_.current.count == 0; }

 private:
  [[gnu::cold]] samples<T> fill_indices(memory& out) {
    const std::size_t count = std::min(batch_size_, look_ahead(batch_size_));
    if (count < batch_size_) {
      if (state_.taken == 0) refuse_fewer_than_a_batch(count);
      if (drops_remainder_) return {};
    }
    samples<T> batch;
    batch.stored = out.indices(batch_size_), batch.count = static_cast<int>(count);
    std::copy_n(state_.indices.data(), count, out.indices(batch_size_));
    std::copy(state_.indices.data() + count, state_.indices.data() + state_.known, state_.indices.data());
    state_.known -= count, state_.taken += count;
    return batch;
  }

  struct state : position<V> {
    strata::detail::grown_array<sample_index> indices;  // of a batch and of the next few samples
    std::size_t known = 0;                              // how many of them have been read
    memory buffer;
    samples<T> current;
    bool begun = false, by_index = false, wants_indices = false;
    int epoch = 0;
    std::size_t taken = 0;              // samples of this epoch
    row_choice wanted;                  // empty: all rows
    row_writers writers;                // empty: the calling thread writes
    std::unique_ptr<gather_team> team;  // null as long as one thread suffices
    std::optional<thread_tuner> tuner;  // with autotune
  };

  /// Reads indices until `wanted` are available or the view ends. Returns the number available.
  std::size_t look_ahead(std::size_t wanted) {
    std::size_t known = state_.known;
    sample_index* const indices = state_.indices.data();
    for (; known < wanted && !state_.done(base_); ++*state_.at) indices[known++] = **state_.at;
    return state_.known = known;
  }
  int threads_for_this_batch() {
    int threads = parallelism(base_.rows());
    if (threads == 0) {
      if (!state_.tuner) state_.tuner.emplace();
      threads = state_.tuner->threads_for_next_batch();
    }
    if (threads > 1 && !state_.team) state_.team = std::make_unique<gather_team>();
    return threads;
  }

  [[gnu::cold]] void refuse_fewer_than_a_batch(std::size_t count) const {
    const std::string name = strata::detail::text_of({"batch", brackets_[0], batch_size_, brackets_[1]});
    if (count == 0) throw_error({name, ": the data set is empty"});
    if (count < batch_size_)
      throw_error({name, ": a batch of ", batch_size_, " samples is larger than the data set, which has ", count});
  }

  V base_;
  std::size_t batch_size_;
  const char* brackets_;  // "<>" or "()", for messages
  bool drops_remainder_;
  int epoch_ = 0;            // the next epoch
  std::size_t to_skip_ = 0;  // samples at the beginning of the next epoch
  own_state<state> state_;
};

}  // namespace detail

/// Batches of N samples. Only its type differs from the view whose size is known at run time only.
template <element_view V, int N, std::floating_point T, bool DropRemainder>
class batch_view : public batch_view<V, 0, T, DropRemainder> {
 public:
  using of_any_batch_size = batch_view<V, 0, T, DropRemainder>;
  using itself = batch_view;
  static constexpr int batch_size = N;

  /// Throws strata_error if the view has fewer samples than a batch (if it has no size: at the first batch).
  explicit batch_view(V base) : of_any_batch_size(std::move(base), N, "<>") {}
};

/// Batches whose size is known at run time only.
template <element_view V, std::floating_point T, bool DropRemainder>
class batch_view<V, 0, T, DropRemainder> : public detail::single_pass<batch_view<V, 0, T, DropRemainder>>,
                                           public detail::batch_extent<0>,
                                           public detail::form_of_batches<rows_t<V>>,
                                           public detail::batch_maker<V, T> {
  using maker = detail::batch_maker<V, T>;
  friend detail::single_pass<batch_view>;

 public:
  using value_type = core::samples<T>;

  /// Throws strata_error if n is below 1 or the view has fewer samples than a batch (if it has no size: at the first batch).
  batch_view(V base, int n) : batch_view(std::move(base), n, "()") {}

  /// The number of batches.
  std::size_t size() const
    requires detail::sized<V>
  {
    const auto n = static_cast<std::size_t>(core::batch_size_of(*this));
    return (this->base().size() + (DropRemainder ? 0 : n - 1)) / n;
  }

 protected:
  /// `brackets`: those around the size in messages.
  batch_view(V&& base, int n, const char* brackets)
      : detail::batch_extent<0>(n), maker(std::move(base), detail::checked_batch_size(n), brackets, DropRemainder) {}
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

template <class... Options>
inline constexpr bool options_of_batch = ((std::floating_point<Options> || std::same_as<Options, drop_remainder>) && ...);

template <int N, class... Options>
struct batch_fn {
  static_assert(N >= 0, "batch<N> needs at least one sample");
  static_assert(options_of_batch<Options...>, "options of batch are the type of its values (float, double) and drop_remainder");

  template <class V, class... Size>
  auto operator()(V view, Size... n) const {
    constexpr bool holds_samples = sample_view<V> || named_view<V>;
    constexpr bool sets_epoch = !is_index_view<V> || sets_epoch_of_view<V>;
    constexpr bool has_properties = !is_index_view<V> || has_view_properties<V>;
    constexpr bool tells_rows = !is_index_view<V> || has_rows_of_view<V>;
    constexpr bool is_named = !sets_epoch || !has_properties || !tells_rows;
    static_assert(sets_epoch, "a view of samples has set_epoch(int), which passes the epoch on to the view before it");
    static_assert(has_properties, "a view of samples has a static data::view_properties properties");
    static_assert(tells_rows, "a view of samples has rows() const, the rows that its indices belong to");
    constexpr bool has_other_elements = is_element_view<V> && !holds_samples;
    static_assert(
        !has_other_elements,
        "elements before data::batch are samples: an array of numbers, std::array or tensor, or a pair of it and a label");
    static_assert(holds_samples || is_named || has_other_elements,
                  "data::batch takes a view of samples, such as data::from_tensor_slices(...)");
    if constexpr (holds_samples)
      return batch_view<V, N, typename batch_value<Options...>::type, (std::same_as<Options, drop_remainder> || ...)>(
          std::move(view), n...);
  }
};
}  // namespace detail

/// `batch<64>`, `batch<64, double>`, `batch<64, drop_remainder>`: N samples at a time, in float unless an option says otherwise;
/// the last batch may be short. Models batch_source: input range, sized if the view is. A batch lives until the next ++. Nothing
/// is allocated after the first batch.
///
/// A batch is written by the threads that a stage requests (see parallel), which live as long as the view and sleep between
/// batches; otherwise by the threads of the training if the rows lie in an array, or by the calling thread. An exception of a
/// stage arrives at begin() or ++ unchanged (of several, the first in the order of the samples) and ends the pass; the next
/// begin() starts the next epoch. Throws strata_error if the data set has fewer than N samples.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
///
/// What follows `|` is the name of a function, as std::endl is.
template <int N, class... Options>
constexpr closure<detail::batch_fn<N, Options...>> batch() {
  static_assert(N > 0, "batch<N> needs at least one sample");
  return {};
}

/// `batch(n)`, `batch<double>(n)`, `batch<drop_remainder>(n)`: the same with a size given at run time. It is as fast, and code
/// that reads batches of several sizes is compiled once. Also throws strata_error if n is below 1.
template <class... Options>
constexpr auto batch(int n) {
  return detail::partial(detail::batch_fn<0, Options...>{}, n);
}

}  // namespace strata::data
