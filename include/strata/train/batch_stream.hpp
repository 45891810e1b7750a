// A source of batches with its type erased: the loop over batches is compiled once per program instead of once per data set.
#pragma once
#include <optional>
#include <strata/base/meta.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/program/row_tables.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::detail {

template <class T>
class batch_stream {
 public:
  /// Begins a pass over the data.
  virtual void start(int pass) = 0;
  /// Returns false at the end of the pass. The batch is valid until the next call.
  virtual bool next(samples<T>& batch) = 0;
  /// Batches of a pass; 0 if unknown.
  virtual long length() = 0;

  /// Describes which samples come in which order.
  virtual std::string order() const = 0;
  /// The position after the current batch; empty if the source has none.
  virtual std::optional<data_position> where() const = 0;
  /// Sample n of the current batch, of `count`, as the source names it: "record 17 of train.tfrecord". Empty if the source
  /// has no name for it.
  virtual std::string describe(int count, int n) const = 0;
  /// Begins the pass at `from`, a value that `where` of an equal source returned; without one, skips `batches` batches.
  virtual void resume(int pass, const std::optional<data_position>& from, long batches) = 0;

 protected:
  ~batch_stream() = default;
};

/// Names samples by their place in the data or, where the source has none, in the epoch.
template <class T>
class names_in_stream final : public sample_names {
  const batch_stream<T>& stream_;
  int count_;

 public:
  names_in_stream(const batch_stream<T>& stream, int count, long before) : sample_names(before), stream_(stream), count_(count) {}

  [[gnu::cold]] std::string of(long n) const override {
    if (std::string known = stream_.describe(count_, int(n)); !known.empty()) return known;
    const std::string order = stream_.order();
    const bool shuffles = order.find("shuffle(") != order.npos && order.find("shuffle(1,") == order.npos;
    return sample_names::of(n) + (shuffles ? " of this epoch, whose order is shuffled," : "");
  }
};

/// Functions that run once per pass are [[gnu::cold]] here and elsewhere: the compiler optimizes them for size, in less time.
template <class T, class Source>
class stream_over : public batch_stream<T> {
 protected:
  Source& source_;
  bool by_index_ = false;  // batches hold indices of samples

 private:
  row_choice rows_;
  row_writers writers_;
  std::ranges::iterator_t<Source> at_{};
  bool fresh_ = true;  // no batch has been taken yet
  std::optional<data_position> resumed_at_;
  std::vector<T> x_, targets_, weights_;   // a batch converted to T
  std::vector<std::vector<T>> converted_;  // the columns of one
  static constexpr bool tells_position = requires(Source& source, data_position at) {
    { std::as_const(source).where() } -> std::same_as<data_position>;
    source.resume_at(at);
  };

 public:
  /// `rows` are those of each batch that this process reads; `writers` write them if the source allows it. Between two passes
  /// another stream may read the same source, for instance when a callback evaluates on it.
  explicit stream_over(Source& source, const row_choice& rows = {}, const row_writers& writers = {})
      : source_(source), rows_(rows), writers_(writers) {}
  [[gnu::cold]] ~stream_over() { choose({}, {}); }
  stream_over(const stream_over&) = delete;
  stream_over& operator=(const stream_over&) = delete;

  [[gnu::cold]] void start(int pass) override {
    choose(rows_, writers_);
    if constexpr (requires { source_.set_epoch(pass); }) source_.set_epoch(pass);
    ask_for_indices();
    at_ = std::ranges::begin(source_);
    fresh_ = true;
    resumed_at_.reset();
  }
  bool next(samples<T>& batch) override {
    if (!fresh_) ++at_;
    fresh_ = false;
    if (at_ == std::ranges::end(source_)) return false;
    take(*at_, batch);
    return true;
  }
  long length() override {
    if constexpr (std::ranges::sized_range<Source>)
      return long(std::ranges::size(source_));
    else
      return 0;
  }

  [[gnu::cold]] std::string order() const override {
    std::string order = data::detail::order_of(source_);
    if constexpr (!tells_position) order += text_of({order.empty() ? "" : " | ", "batch(", batch_size_of(source_), ")"});
    return order;
  }
  std::optional<data_position> where() const override {
    if (fresh_) return resumed_at_;  // the source has already counted the batch that it prefetched
    if constexpr (tells_position) return std::as_const(source_).where();
    return {};
  }
  [[gnu::cold]] std::string describe([[maybe_unused]] int count, [[maybe_unused]] int n) const override {
    if constexpr (data::detail::describes<Source>)
      if (const std::optional<data_position> after = where()) return std::as_const(source_).describe(*after, count, n);
    return {};
  }
  [[gnu::cold]] void resume(int pass, const std::optional<data_position>& from, long batches) override {
    if constexpr (tells_position)
      if (from) {
        choose(rows_, writers_);
        source_.resume_at(*from);
        ask_for_indices();
        at_ = std::ranges::begin(source_);
        fresh_ = true;
        resumed_at_ = from;
        return;
      }
    start(pass);
    samples<T> seen;
    for (long i = 0; i < batches && next(seen); ++i) {
    }
  }

 private:
  static void take(const samples<T>& from, samples<T>& batch) { batch = from; }
  /// Converts elements of another precision: a network in double takes batches of float.
  template <class U>
    requires requires { typename Source::columns; }
  [[gnu::cold]] void take(const samples<U>& from, samples<T>& batch) {
    batch = {};
    batch.count = from.count;
    std::size_t used = 0;
    const auto convert = [&](const U* rows, long size) -> const T* {
      if (!rows) return nullptr;
      if (used == converted_.size()) converted_.emplace_back();
      std::vector<T>& to = converted_[used++];
      to.assign(rows, rows + from.count * size);
      return to.data();
    };
    [&]<class... Column>(type_list<Column...>) {
      int x = 0, y = 0;
      const auto add = [&](label_kind kind, long size) {
        if (kind == label_kind::none) {
          batch.inputs[x] = convert(from.inputs[x], size);
          ++x;
          return;
        }
        const truth_rows<U>& truth = from.truths[y];
        batch.truths[y++] = {truth.labels, convert(truth.targets, size), convert(truth.weights, 1)};
      };
      (add(Column::kind, Column::extents.size()), ...);
    }(typename Source::columns{});
  }
  template <class U>
  [[gnu::cold]] void take(const samples<U>& from, samples<T>& batch) {
    const std::size_t count = std::size_t(from.count), in = count * std::size_t(Source::sample_shape.size()),
                      out = from.targets() ? count * std::size_t(Source::target_shape.size()) : 0;
    x_.assign(from.x(), from.x() + in);
    targets_.assign(from.targets(), from.targets() + out);
    const U* const weights = from.truths[0].weights;
    weights_.assign(weights, weights ? weights + count : weights);
    batch = {x_.data(), {from.labels(), out > 0 ? targets_.data() : nullptr, weights ? weights_.data() : nullptr}, from.count};
  }
  [[gnu::cold]] void choose(const row_choice& rows, const row_writers& writers) {
    if constexpr (requires { source_.only_rows(rows); }) source_.only_rows(rows);
    if constexpr (requires { source_.written_by(writers); }) source_.written_by(writers);
  }
  void ask_for_indices() {
    if constexpr (requires { source_.by_index(); })
      if (by_index_) source_.by_index();
  }
};

}  // namespace strata::detail
