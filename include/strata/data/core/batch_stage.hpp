// Base of the stages after batch: take, skip, repeat and map of batches.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <strata/base/shape.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_buffer.hpp>
#include <strata/data/core/batch_extent.hpp>
#include <strata/data/core/named_buffer.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/single_pass.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data::detail {

template <class B>
concept batches = std::ranges::view<B> && batch_source<B>;
template <class B>
inline constexpr bool is_batches = batches<B>;  // for static_assert, as is_element_view
/// The type of the values in a batch of B.
template <class B>
using batch_value_t = typename B::value_type::value_type;
/// The memory of a batch of B.
template <class B>
using buffer_of = typename buffer_for<batch_value_t<B>, B>::type;

// Optional members of a batch source, see batch_source.

/// B can make a batch in memory of the caller.
template <class B>
concept fills_buffers = requires(B& base, buffer_of<B>& out) {
  base.start_epoch();
  base.fill(out);
};
template <class B>
concept has_set_epoch = requires(B& base, int epoch) { base.set_epoch(epoch); };
template <class B>
concept has_only_rows = requires(B& base, row_choice which) { base.only_rows(which); };
template <class B>
concept has_written_by = requires(B& base, row_writers who) { base.written_by(who); };
template <class B>
concept gives_indices = requires(B& base, const B& constant) {
  base.by_index();
  constant.stored()->count;
};
template <class B>
concept resumable = requires(B& base, data_position position) {
  base.resume_at(position);
  { std::as_const(base).where() } -> std::same_as<data_position>;
};
template <class B>
concept describes = requires(const B& base, data_position after, int count, int n) { base.describe(after, count, n); };

/// Copies a batch of B into the buffer, which allocates room for batch_size samples.
template <batches B, class T>
samples<T> copy_batch(const samples<T>& from, named_buffer<T, typename B::columns>& to, int batch_size) {
  return to.copy(from, static_cast<std::size_t>(batch_size));
}
template <batches B, class T>
samples<T> copy_batch(const samples<T>& from, batch_buffer<T>& to, int batch_size) {
  constexpr std::size_t x_size{B::sample_shape.size()}, target_size{B::target_shape.size()};
  constexpr bool sparse = B::labels == label_kind::sparse, dense = B::labels == label_kind::dense;
  const auto n = static_cast<std::size_t>(from.count), most = static_cast<std::size_t>(batch_size);
  to.prepare(most * x_size, sparse ? most : 0, dense ? most * target_size : 0);
  std::copy_n(from.x(), n * x_size, to.x());
  if constexpr (sparse) std::copy_n(from.labels(), n, to.labels());
  if constexpr (dense) std::copy_n(from.targets(), n * target_size, to.targets());
  T* const weights = from.truths[0].weights ? to.weights(most) : nullptr;
  if (weights) std::copy_n(from.truths[0].weights, n, weights);
  return {to.x(), {sparse ? to.labels() : nullptr, dense ? to.targets() : nullptr, weights}, from.count};
}

/// Whether the batches come from a batch that drops a short last one.
template <class B>
bool drops_remainder(const B& view) {
  if constexpr (requires { view.drops_remainder(); })
    return view.drops_remainder();
  else if constexpr (requires { view.base(); })
    return drops_remainder(view.base());
  else
    return false;
}
/// The description of a stage whose samples depend on the size of the batches before it.
template <batches B>
std::string order_of_batches(const B& base, const std::string& stage) {
  return strata::detail::text_of({"batch(", batch_size_of(base), drops_remainder(base) ? ", drop_remainder" : "", ") | ", stage});
}

/// Base of Self, which has `start_pass()` and `make(buffer)`. make returns the next batch, in the buffer or in memory of B, or a
/// batch of count 0 at the end. Counts epochs; has a position if B has one. Self may have a `position_after(position of B)`.
template <class Self, batches B>
class batch_stage : public single_pass<Self>, public batch_extent_of<B>, public form_of_batches<B> {
  friend single_pass<Self>;

 public:
  using value_type = typename B::value_type;

  void set_epoch(int epoch)
    requires has_set_epoch<B>
  {
    resume_next({.epoch = epoch});
  }
  void only_rows(row_choice which)
    requires has_only_rows<B>
  {
    base_.only_rows(std::move(which));
  }
  void written_by(row_writers who)
    requires has_written_by<B>
  {
    base_.written_by(std::move(who));
  }
  data_position where() const
    requires resumable<B>
  {
    return state_.begun ? self().position_after(base_.where()) : next_;
  }
  void resume_at(data_position from)
    requires resumable<B>
  {
    resume_next(from);
  }
  /// See batch_maker. Self hides it if its positions differ from those of B.
  std::string describe(data_position after, int count, int n) const
    requires describes<B>
  {
    return base_.describe(after, count, n);
  }
  const B& base() const { return base_; }

  /// For stages that own their buffers: start_epoch(), then fill() until the count is 0.
  void start_epoch()
    requires fills_buffers<B>
  {
    begin_pass();
  }
  value_type fill(buffer_of<B>& out)
    requires fills_buffers<B>
  {
    return self().make(out);
  }

 protected:
  using buffer = buffer_of<B>;

  explicit batch_stage(B&& base) : batch_extent_of<B>(batch_size_of(base)), base_(std::move(base)) {}

  data_position position_after(data_position of_base) const { return of_base; }

  /// The number of this worker's batches within so many samples of all workers.
  std::size_t batches_in(std::uint64_t samples) const {
    const std::uint64_t most = samples_in(1);
    return static_cast<std::size_t>((samples + most - 1) / most);
  }
  std::uint64_t samples_in(std::size_t full_batches) const {
    return std::uint64_t{full_batches} * static_cast<std::uint64_t>(batch_size_of(base_)) * shards_of(base_);
  }

  /// Begins a pass over B at a position.
  void start_base(data_position from) {
    if constexpr (resumable<B>)
      base_.resume_at(from);
    else if constexpr (has_set_epoch<B>)
      base_.set_epoch(from.epoch);
    if constexpr (fills_buffers<B>) {
      base_.start_epoch();
    } else {
      state_.at.emplace(std::ranges::begin(base_));
      state_.at_first = true;
    }
  }
  value_type next_of_base(buffer& out) {
    if constexpr (fills_buffers<B>) {
      return base_.fill(out);
    } else {
      if (!std::exchange(state_.at_first, false)) ++*state_.at;
      return *state_.at == std::ranges::end(base_) ? value_type{} : value_type(**state_.at);
    }
  }

  /// The position at which the pass began, or at which the next one will begin.
  data_position from() const { return state_.begun ? state_.from : next_; }

  B base_;

 private:
  struct state {
    std::optional<std::ranges::iterator_t<B>> at;
    bool at_first = true;
    bool begun = false;
    data_position from;
    buffer memory;
    value_type current;
  };

  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }

  void resume_next(data_position from) {
    next_ = from;
    state_.begun = false;
  }
  void begin_pass() {
    state_.begun = true;
    state_.from = std::exchange(next_, {.epoch = next_.epoch + 1});
    self().start_pass();
  }
  void start() {
    begin_pass();
    next();
  }
  const value_type& read() const { return state_.current; }
  void next() { state_.current = self().make(state_.memory); }
  bool done() const { return state_.current.count == 0; }

  data_position next_;
  own_state<state> state_;
};

}  // namespace strata::data::detail
