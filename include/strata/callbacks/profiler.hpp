// profiler: the time of each layer, forward and backward, of data, communication and waiting; and a trace for Perfetto.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/callbacks/monitor.hpp>
#include <strata/callbacks/trace_file.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/program/print_plan.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// The time that the threads of one process spent in the kernels of one group.
struct kernel_time {
  double seconds = 0, samples = 0, calls = 0;
};
}  // namespace core

namespace detail {
/// The measurements of one fit.
class profile_of_fit final : kernel_observer {
  using clock = std::chrono::steady_clock;

  /// The measurements of one thread, the only one that writes to them.
  struct alignas(64) thread_profile {
    std::thread::id thread;
    clock::time_point began{};
    std::vector<kernel_time> times;  // times of each group forward, then of each group backward
    std::vector<traced_event> events;
  };

  long skipped_steps_, traced_steps_;
  bool has_trace_;
  std::vector<kernel_time> totals_;
  std::vector<listed_kernel> kernels_;
  std::size_t element_size_ = 0;
  double peak_ = 0;
  std::uint64_t fit_ = 0;  // identifies the fit in thread-local caches of profiles
  std::mutex mutex_;
  std::list<thread_profile> threads_;
  std::atomic<bool> counts_ = false, traces_ = false;

  long steps_ = 0, counted_ = 0;
  double seconds_of_steps_ = 0;
  clock::time_point began_{}, step_began_{}, counted_from_{}, counted_until_{};
  time_split before_{}, after_{}, at_step_{};

 public:
  profile_of_fit(fitted_model& model, long skipped_steps, long traced_steps, bool has_trace)
      : skipped_steps_(skipped_steps), traced_steps_(traced_steps), has_trace_(has_trace) {
    static std::atomic<std::uint64_t> fits = 0;
    fit_ = ++fits;
    kernels_ = model.kernels();
    element_size_ = model.element_size();
    totals_.assign(2 * kernels_.size(), {});
    peak_ = element_size_ == sizeof(double) ? peak_of_a_thread<double>() : peak_of_a_thread<float>();
    began_ = clock::now();
    model.observe(*this);
  }
  void begin_step(fitted_model& model) {
    counts_ = steps_ >= skipped_steps_;
    traces_ = counts_ && has_trace_ && steps_ < skipped_steps_ + traced_steps_;
    const time_split now = model.time();
    step_began_ = clock::now();
    if (counts_ && counted_ == 0) before_ = now, counted_from_ = step_began_;
    if (traces_ && counted_ > 0) {
      const double input = now.input - at_step_.input;
      trace(mine(), {.what = traced_event::input, .begin = since(step_began_) - input, .seconds = input});
    }
    at_step_ = now;
  }
  void end_step(long step, fitted_model& model) {
    const clock::time_point end = clock::now();
    ++steps_;
    if (!counts_) return;
    ++counted_;
    counted_until_ = end;
    seconds_of_steps_ += seconds(step_began_, end);
    after_ = model.time();
    if (traces_)
      trace(mine(), {.what = traced_event::step,
                     .number = double(step),
                     .begin = since(step_began_),
                     .seconds = seconds(step_began_, end),
                     .communication = after_.communication - at_step_.communication,
                     .waiting = after_.waiting - at_step_.waiting});
  }
  void end() {
    counts_ = traces_ = false;
    for (const thread_profile& t : threads_)
      for (std::size_t i = 0; i < totals_.size(); ++i) {
        totals_[i].seconds += t.times[i].seconds;
        totals_[i].samples += t.times[i].samples;
        totals_[i].calls += t.times[i].calls;
      }
  }

  void write_trace(any_process_group& group, const std::filesystem::path& file) const {
    std::vector<traced_event> own;
    double thread = 0;
    for (const thread_profile& t : threads_) {
      for (traced_event event : t.events) {
        event.thread = thread;
        own.push_back(event);
      }
      ++thread;
    }
    const std::vector<std::vector<traced_event>> all = gather_events(group, own);
    if (!group.is_chief()) return;
    std::vector<std::string> names;
    for (const listed_kernel& k : kernels_) names.push_back(k.layers);
    write_trace_file(file, all, names);
  }

  long steps() const { return counted_; }
  const std::vector<listed_kernel>& kernels() const { return kernels_; }
  const kernel_time& time_of(std::size_t kernel, pass_direction direction) const {
    return totals_[direction == pass_direction::forward ? kernel : kernels_.size() + kernel];
  }
  double peak() const { return peak_; }

  std::string text() const {
    if (counted_ == 0) return "profile: no step was counted\n";
    const double steps = double(counted_), all = seconds(counted_from_, counted_until_);
    double in_kernels = 0;
    for (const kernel_time& t : totals_) in_kernels += t.seconds;
    const double threads = double(std::max<std::size_t>(1, threads_.size()));
    const double communication = after_.communication - before_.communication, waiting = after_.waiting - before_.waiting;
    const auto percent = [&](double part) { return formatted("%.1f %%", all > 0 ? 100 * part / all : 0); };
    const double input = std::min(all - seconds_of_steps_, after_.input - before_.input);
    std::string out =
        text_of({"profile of ", counted_, counted_ == 1 ? " step of " : " steps of ", formatted("%.3f", 1e3 * all / steps),
                 " ms with ", threads_.size(), threads_.size() == 1 ? " thread: kernels " : " threads: kernels ",
                 percent(in_kernels / threads), ", sums, update and idle threads ",
                 percent(std::max(0.0, seconds_of_steps_ - in_kernels / threads - communication - waiting)), ", input ",
                 percent(input), ", communication ", percent(communication), ", waiting ", percent(waiting),
                 ", callbacks and progress ", percent(std::max(0.0, all - seconds_of_steps_ - input)), '\n'});
    out += text_of({"peak of a thread: ", formatted("%.1f", peak_ / 1e9), " GFLOP/s, measured\n"});
    std::vector<std::vector<std::string>> rows = {{"layers", "operations", "forward ms", "GFLOP/s", "of peak", "MB",
                                                   "backward ms", "GFLOP/s", "of peak", "MB", "of kernels"}};
    for (std::size_t g = 0; g < kernels_.size(); ++g) {
      std::vector<std::string> row = {kernels_[g].layers, kernels_[g].operations};
      double both = 0;
      for (const pass_direction direction : {pass_direction::forward, pass_direction::backward}) {
        const kernel_time& t = time_of(g, direction);
        const bool backward = direction == pass_direction::backward;
        const double flops = kernels_[g].flops(backward) * t.samples;
        const bool has_rate = flops > 0 && t.seconds > 0;
        both += t.seconds;
        row.push_back(t.calls > 0 ? formatted("%.3f", 1e3 * t.seconds / steps) : "");
        row.push_back(has_rate ? formatted("%.1f", flops / t.seconds / 1e9) : "");
        row.push_back(has_rate && peak_ > 0 ? formatted("%.0f %%", 100 * flops / t.seconds / peak_) : "");
        row.push_back(t.calls > 0 ? formatted("%.2f", kernels_[g].elements(backward, t.samples, t.calls) * double(element_size_) /
                                                          steps / 1e6)
                                  : "");
      }
      row.push_back(formatted("%.1f %%", in_kernels > 0 ? 100 * both / in_kernels : 0));
      rows.push_back(std::move(row));
    }
    return out + aligned(rows);
  }

 private:
  static double seconds(clock::time_point from, clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }
  double since(clock::time_point t) const { return seconds(began_, t); }

  bool reads_gradients() const override { return false; }
  void begins(const observed_call&) override { mine().began = clock::now(); }
  void ended(const observed_call& call, const observed_numbers&) override {
    const clock::time_point end = clock::now();
    if (!counts_.load(std::memory_order_relaxed)) return;
    thread_profile& own = mine();
    const bool backward = call.direction == pass_direction::backward;
    kernel_time& t = own.times[std::size_t(call.group) + (backward ? kernels_.size() : 0)];
    const double took = seconds(own.began, end);
    t.seconds += took;
    if (!call.collects) t.samples += call.count, t.calls += 1;
    if (traces_.load(std::memory_order_relaxed))
      trace(own, {.what = double(backward ? traced_event::backward : traced_event::forward),
                  .number = double(call.group),
                  .begin = since(own.began),
                  .seconds = took,
                  .samples = double(call.count)});
  }

  /// The profile of the calling thread. It is made in the first step, which is the only one that allocates.
  thread_profile& mine() {
    thread_local std::pair<std::uint64_t, thread_profile*> last{};
    if (last.first != fit_) {
      const std::lock_guard lock(mutex_);
      const auto at = std::ranges::find(threads_, std::this_thread::get_id(), &thread_profile::thread);
      if (at != threads_.end()) {
        last = {fit_, &*at};
      } else {
        thread_profile& made = threads_.emplace_back();
        made.thread = std::this_thread::get_id();
        made.times.resize(totals_.size());
        if (has_trace_) made.events.reserve(most_events);
        last = {fit_, &made};
      }
    }
    return *last.second;
  }

  static constexpr std::size_t most_events = 100'000;  // events per thread
  static void trace(thread_profile& own, const traced_event& event) {
    if (own.events.size() < most_events) own.events.push_back(event);
  }
  template <class T>
  [[gnu::noinline]] static double peak_of_a_thread() {
#if defined(__AVX512F__)
    constexpr std::size_t bytes = 64;
#elif defined(__AVX__)
    constexpr std::size_t bytes = 32;
#else
    constexpr std::size_t bytes = 16;
#endif
    typedef T vector __attribute__((vector_size(bytes)));
    constexpr int chains = 10;  // independent chains, more than the latency of a multiply-add times its throughput
    constexpr long repeats = 20'000;
    vector sums[chains];
    for (vector& each : sums) each = vector{} + T(1);
    volatile T unknown = T(0.999);
    const vector factor = vector{} + unknown, summand = vector{} + T(1) - factor;
    double best = 0;
    for (int attempt = 0; attempt < 8; ++attempt) {
      const clock::time_point from = clock::now();
      for (long i = 0; i < repeats; ++i)
        for (int k = 0; k < chains; ++k) sums[k] = sums[k] * factor + summand;
      const double took = seconds(from, clock::now());
      best = std::max(best, 2.0 * double(bytes / sizeof(T)) * chains * double(repeats) / took);
    }
    for (const vector& each : sums) unknown = each[0];
    return best;
  }
};
}  // namespace detail

/// `fit(source, epochs(10), profiler{})` prints a table at the end: for each group of fused layers and each direction the
/// milliseconds per step (summed over threads), GFLOP/s, their share of the measured peak of a thread, and megabytes read and
/// written. With `profiler{.trace = "trace.json"}` the chief also writes a trace with a row for each thread of each process; then
/// all processes that train together have to pass the callback. With a parameter server each worker sees itself only. It takes
/// less than 2 % of the time of a step; without it, nothing is measured.
/// Throws strata_error if the trace cannot be written.
struct profiler {
  long skipped_steps = 1;         // steps at the beginning that are not measured: they allocate, and read new memory
  std::filesystem::path trace{};  // a file for https://ui.perfetto.dev or chrome://tracing; empty: none
  long traced_steps = 20;         // steps traced after the skipped ones
  bool prints = true;             // whether the chief prints the table at the end

  std::shared_ptr<detail::profile_of_fit> profile{};  // profile of the last fit; not a setting

  void on_train_begin(training_state&, fitted_model& model) {
    detail::refuse_negative("profiler", "skipped_steps", double(skipped_steps));
    detail::refuse_negative("profiler", "traced_steps", double(traced_steps));
    profile = std::make_shared<detail::profile_of_fit>(model, skipped_steps, traced_steps, !trace.empty());
  }
  void on_batch_begin(training_state&, fitted_model& model) { profile->begin_step(model); }
  void on_batch_end(training_state& s, fitted_model& model) { profile->end_step(s.step, model); }
  void on_train_end(training_state&, fitted_model& model) {
    profile->end();
    if (!trace.empty()) profile->write_trace(model.group(), trace);
    if (prints && model.group().is_chief()) std::cout << text() << std::flush;
  }

  /// The number of measured steps of the last fit.
  long steps() const { return profile ? profile->steps() : 0; }
  const std::vector<core::listed_kernel>& kernels() const { return profile->kernels(); }
  const core::kernel_time& time_of(std::size_t kernel, core::pass_direction direction) const {
    return profile->time_of(kernel, direction);
  }
  /// Floating-point operations per second that one thread reaches with the flags of this program, measured by a loop of fused
  /// multiply-adds.
  double peak() const { return profile->peak(); }
  /// The printed table.
  std::string text() const { return profile->text(); }
};
static_assert(core::callback<profiler>);

}  // namespace strata
