// A source of batches, and the hooks of callbacks, with their types erased: the loop over them is compiled once per program,
// not once per data set.
#pragma once
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/callback.hpp>
#include <tuple>

namespace strata::detail {

template <class T>
class batch_stream {
 public:
  /// Begins the next pass over the data.
  virtual void start(int pass) = 0;
  /// False at the end of the pass; the batch is valid until the next call.
  virtual bool next(samples<T>& batch) = 0;
  /// Batches of a pass; 0 if nobody knows.
  virtual long length() = 0;

 protected:
  ~batch_stream() = default;
};

template <class T, class Source>
class stream_over final : public batch_stream<T> {
  Source& source_;
  std::ranges::iterator_t<Source> at_{};
  bool fresh_ = true;

 public:
  explicit stream_over(Source& source) : source_(source) {}

  void start(int pass) override {
    if constexpr (requires { source_.set_epoch(pass); }) source_.set_epoch(pass);
    at_ = std::ranges::begin(source_);
    fresh_ = true;
  }
  bool next(samples<T>& batch) override {
    if (!fresh_) ++at_;
    fresh_ = false;
    if (at_ == std::ranges::end(source_)) return false;
    batch = *at_;
    return true;
  }
  long length() override {
    if constexpr (std::ranges::sized_range<Source>)
      return long(std::ranges::size(source_));
    else
      return 0;
  }
};

/// The hooks of all callbacks among the options of fit.
class hook_calls {
 public:
  virtual void train_begin(training_state&) = 0;
  virtual void train_end(training_state&) = 0;
  virtual void epoch_begin(training_state&) = 0;
  virtual void epoch_end(training_state&) = 0;
  virtual void batch_end(training_state&) = 0;

 protected:
  ~hook_calls() = default;
};

template <class... Options>
class hooks_of final : public hook_calls {
  std::tuple<Options&...> options_;

  template <class F>
  void each(F&& f) {
    std::apply([&](auto&... option) { (f(option), ...); }, options_);
  }

 public:
  explicit hooks_of(Options&... options) : options_(options...) {}

  void train_begin(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::train_begin<C>) c.on_train_begin(s);
    });
  }
  void train_end(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::train_end<C>) c.on_train_end(s);
    });
  }
  void epoch_begin(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::epoch_begin<C>) c.on_epoch_begin(s);
    });
  }
  void epoch_end(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::epoch_end<C>) c.on_epoch_end(s);
    });
  }
  void batch_end(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::batch_end<C>) c.on_batch_end(s);
    });
  }
};

}  // namespace strata::detail
