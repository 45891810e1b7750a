// Shuffles samples: their order depends on (seed, epoch) only.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <strata/base/error.hpp>
#include <strata/base/grown_array.hpp>
#include <strata/base/random.hpp>
#include <strata/base/random_draws.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/index_stage.hpp>
#include <string>
#include <utility>

namespace strata::data {

/// A seed that is equal in all workers. They shuffle in the same order, so shards after the shuffle do not overlap.
struct shared_seed {
  std::uint64_t value;
  constexpr explicit shared_seed(std::uint64_t seed) : value(seed) {}  // otherwise clang reads {.seed = 7} as a shared_seed
};

struct shuffle_options {
  std::uint64_t seed = 0;
  bool reshuffle_each_iteration = true;  // false: every epoch has the order of epoch 0
};

/// A window of buffer_size samples. Each step yields one of them at random, and the next sample of V takes its place. At the end
/// of V the window shrinks. A window that holds all of V is a Fisher-Yates shuffle, one swap at a time.
template <element_view V, bool SharedSeed>
class shuffle_view : public detail::index_stage<shuffle_view<V, SharedSeed>, V> {
  using stage = detail::index_stage<shuffle_view, V>;
  friend detail::single_pass<shuffle_view>;

 public:
  static constexpr view_properties properties{.same_on_all_workers = SharedSeed};

  shuffle_view(V base, std::size_t buffer_size, shuffle_options options)
      : stage(std::move(base)),
        buffer_size_(std::min<std::size_t>(buffer_size, std::numeric_limits<std::uint32_t>::max())),
        options_(options) {
    if (buffer_size == 0) throw_error("shuffle: buffer_size is 0, it must be at least 1");
  }

  std::size_t size() const
    requires detail::sized<V>
  {
    return this->base_.size();
  }
  void set_epoch(int epoch) {
    epoch_ = epoch;
    stage::set_epoch(epoch);
  }
  std::string order() const {
    return strata::detail::text_of({"shuffle(", buffer_size_, ", seed ", options_.seed,
                                    options_.reshuffle_each_iteration ? ")" : ", the same in each epoch)"});
  }

 private:
  struct state : detail::position<V> {
    strata::detail::grown_array<sample_index> window;  // the first `left` elements
    std::size_t left = 0;
    std::size_t chosen = 0;
    strata::detail::random_draws draws;
  };

  [[gnu::cold]] void start() {
    const int epoch = options_.reshuffle_each_iteration ? epoch_ : 0;
    ++epoch_;
    state_.draws = {core::philox{options_.seed}.fork(0x73687566666C65), static_cast<std::uint64_t>(epoch)};  // "shuffle"
    state_.left = 0;
    if constexpr (detail::sized<V>) state_.window.grow(std::min(buffer_size_, this->base_.size()));
    state_.start(this->base_);
    for (; state_.left < buffer_size_ && !state_.done(this->base_); ++*state_.at) {
      if (state_.left == state_.window.size()) state_.window.grow(2 * state_.left + 1'000);
      state_.window[state_.left++] = **state_.at;
    }
    choose();
  }
  sample_index read() const { return state_.window[state_.chosen]; }
  void next() {
    if (!state_.done(this->base_)) {
      state_.window[state_.chosen] = **state_.at;
      ++*state_.at;
    } else {
      state_.window[state_.chosen] = state_.window[--state_.left];
    }
    choose();
  }
  bool done() const { return state_.left == 0; }

  void choose() {
    if (!done()) state_.chosen = state_.draws.below(static_cast<std::uint32_t>(state_.left));
  }

  std::size_t buffer_size_;
  shuffle_options options_;
  int epoch_ = 0;
  detail::own_state<state> state_;
};

namespace detail {
struct shuffle_fn {
  template <std::ranges::range V, class Options = shuffle_options>
  auto operator()(V view, std::size_t buffer_size, Options options = {}) const {
    constexpr bool right_view = is_element_view<V>;
    static_assert(right_view, "data::shuffle takes a view of samples or elements: put it before batch");
    if constexpr (!element_view<V>)
      return;
    else if constexpr (std::same_as<Options, shared_seed>)
      return shuffle_view<V, true>(std::move(view), buffer_size, {.seed = options.value});
    else
      return shuffle_view<V, false>(std::move(view), buffer_size, options);
  }
  constexpr auto operator()(std::size_t buffer_size, shuffle_options options = {}) const {
    return detail::partial(*this, buffer_size, options);
  }
  constexpr auto operator()(std::size_t buffer_size, shared_seed seed) const { return detail::partial(*this, buffer_size, seed); }
};
}  // namespace detail

/// `shuffle(10'000)`, `shuffle(10'000, {.seed = 7, .reshuffle_each_iteration = false})`, and before shard
/// `shuffle(10'000, shared_seed{7})`: the shuffle of tf.data. A buffer_size of at least the size of the data set shuffles
/// uniformly; with a smaller one, sample i comes at place i - buffer_size + 1 or later. Input range; sized if the view is.
/// Nothing is allocated after the first epoch. Throws strata_error if buffer_size is 0.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle
inline constexpr detail::shuffle_fn shuffle{};

}  // namespace strata::data
