// A compiled module, calls of it that may not have ended, and the copies of batches from which its arguments are sent. All keep
// their memory, so that a step allocates no arrays of handles.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <strata/base/exceptions.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/concepts/ends.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <utility>
#include <vector>

namespace strata::detail {

/// A batch and the scalars of a step, as host arguments of a module. Rows are contiguous.
struct host_arguments {
  std::array<const void*, max_ends> inputs{}, truths{}, weights{};  // weights: null for those that are all 1
  int count = 0;                                                    // rows
  std::span<const std::byte> step_scalars{};
  std::uint64_t random_key = 0;
};

/// Arrays that stay on the devices, one copy on each: number i of replica r is at(i, r).
class device_state {
  std::vector<pjrt::buffer> arrays_;
  std::size_t replicas_;

 public:
  device_state(std::size_t arrays, int replicas) : arrays_(arrays * std::size_t(replicas)), replicas_(std::size_t(replicas)) {}
  int replicas() const { return int(replicas_); }
  pjrt::buffer& at(std::size_t array, std::size_t replica) { return arrays_[array * replicas_ + replica]; }

  /// Whether a module that takes over the arrays has not ended well: they are then neither the old nor the new ones.
  bool is_lost = false;
};

/// Moves `used` to memory that lasts until the process ends, because devices may still access it.
template <class T>
void keep_forever(T& used) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<T>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(used));
}

/// A call of a module, and what must stay until it has ended.
class module_call {
  friend class running_module;
  std::vector<pjrt::event> ended_;                    // of each replica
  std::vector<pjrt::buffer> used_, given_up_, made_;  // [replica][number] of arguments, of state before the call, of results
  std::size_t results_ = 0;
  bool is_running_ = false, changes_state_ = false;

 public:
  shared_call shared{};  // what it is to other processes

  module_call() = default;
  module_call(module_call&&) = default;
  ~module_call() { forget(); }

  /// Returns when the call has ended, if it has begun. Throws plugin_error if it failed; then sets state.is_lost if it changes
  /// the state. `until_ready(event)`: waits for an event; if it throws, the memory of the call is left to the devices.
  template <class F>
  void wait(device_state& state, const F& until_ready) {
    if (!is_running_) return;
    struct end_of_call {
      module_call& call;
      device_state& state;
      bool is_good = false;
      ~end_of_call() {
        state.is_lost |= call.changes_state_ && !is_good;
        call.forget();
      }
    } end{*this, state};
    STRATA_TRY {
      for (const pjrt::event& e : ended_) until_ready(e);
    }
    STRATA_CATCH_ALL {
      give_up();
      STRATA_THROW_AGAIN;
    }
    for (const pjrt::event& e : ended_) e.wait("execute");
    end.is_good = true;
  }
  void wait(device_state& state) {
    wait(state, [](const pjrt::event&) {});
  }

  /// True if wait() would return or throw at once. Throws plugin_error.
  bool has_ended() const {
    return !is_running_ || std::ranges::all_of(ended_, [](const pjrt::event& e) { return e.is_ready(); });
  }
  /// A call that may never end: it is not waited for, and keeps its memory until the process ends.
  void give_up() {
    if (!is_running_) return;
    keep_forever(*this);
    is_running_ = false;
  }
  /// A result that is no state.
  pjrt::buffer& result(std::size_t number, int replica) { return made_[std::size_t(replica) * results_ + number]; }

 private:
  void forget() noexcept {
    for (pjrt::event& e : ended_) {
      e.wait_quietly();
      e = {};
    }
    for (std::vector<pjrt::buffer>* buffers : {&used_, &given_up_})
      for (pjrt::buffer& b : *buffers) b = {};
    is_running_ = false;
  }
};

class staged_steps;

/// A compiled module whose arguments and results are partly arrays of a device_state. All memory that a call needs on the host is
/// made once.
class running_module {
  std::shared_ptr<const pjrt::client> client_;
  pjrt::executable code_;
  stablehlo::module_text what_;
  std::size_t replicas_;  // of this process
  int first_ = 0;         // index of the first of them among all replicas
  std::int64_t rows_;     // of a replica
  std::vector<std::size_t> state_of_argument_, state_of_result_;
  bool changes_state_ = false;

  std::vector<pjrt::abi::buffer*> arguments_, results_;  // [replica][number]
  std::vector<pjrt::abi::buffer* const*> argument_lists_;
  std::vector<pjrt::abi::buffer**> result_lists_;
  std::vector<pjrt::abi::event*> complete_;

 public:
  static constexpr std::size_t no_state = ~std::size_t{0};

  /// `place`: returns the index in the device_state of an argument or result that stays on the devices; else no_state.
  template <class F>
  running_module(std::shared_ptr<const pjrt::client> client, pjrt::executable code, stablehlo::module_text what, int rows,
                 F&& place)
      : client_(std::move(client)),
        code_(std::move(code)),
        what_(std::move(what)),
        replicas_(std::size_t(client_->spans_processes(what_.replicas) ? client_->devices() : what_.replicas)),
        first_(client_->spans_processes(what_.replicas) ? client_->first_of_all() : 0),
        rows_(rows) {
    what_.text = {};
    for (const stablehlo::argument& a : what_.arguments) state_of_argument_.push_back(place(a));
    for (const stablehlo::argument& r : what_.results) {
      state_of_result_.push_back(place(r));
      changes_state_ |= state_of_result_.back() != no_state;
    }
    const std::size_t arguments = what_.arguments.size(), results = what_.results.size();
    arguments_.resize(replicas_ * arguments);
    results_.resize(replicas_ * results);
    complete_.resize(replicas_);
    for (std::size_t r = 0; r < replicas_; ++r) {
      argument_lists_.push_back(arguments_.data() + r * arguments);
      result_lists_.push_back(results_.data() + r * results);
    }
  }

  std::span<const stablehlo::argument> results() const { return what_.results; }
  std::span<const stablehlo::argument> arguments() const { return what_.arguments; }
  bool is_state(std::size_t argument) const { return state_of_argument_[argument] != no_state; }
  int replicas() const { return int(replicas_); }
  int first_replica() const { return first_; }
  int rows() const { return int(rows_); }

  /// Sends `steps` staged steps, beginning with `first`, and begins a call with them. Arrays of the state that the module donates
  /// are replaced by its results. Throws plugin_error; then the call has not begun, the state is unchanged, and the arrays for
  /// its arguments stay with the staged steps.
  inline void begin(device_state& state, staged_steps& from, int first, int steps, module_call& call);

 private:
  void take_results(device_state& state, module_call& call) {
    const std::size_t results = what_.results.size();
    for (std::size_t r = 0; r < replicas_; ++r) {
      call.ended_[r] = pjrt::event(client_->of_plugin(), complete_[r]);
      for (std::size_t i = 0; i < results; ++i) {
        pjrt::buffer out(client_, results_[r * results + i]);
        if (state_of_result_[i] == no_state)
          call.made_[r * results + i] = std::move(out);
        else
          call.given_up_[r * results + i] = std::exchange(state.at(state_of_result_[i], r), std::move(out));
      }
    }
  }
};

/// Copies of the host arguments of steps: the caller may change a batch while it is sent. For each argument and replica, the
/// bytes of a step follow those of the step before.
class staged_steps {
  struct array {
    std::vector<std::byte> bytes;
    std::size_t of_step = 0;
  };
  std::vector<array> arrays_;         // [replica][argument]
  std::vector<pjrt::event> sent_;     // what reads them
  std::vector<pjrt::buffer> unused_;  // to which they are sent, of a call that has not begun
  int steps_ = 0;

 public:
  staged_steps() = default;
  staged_steps(staged_steps&&) = default;
  ~staged_steps() { forget(); }

  int steps() const { return steps_; }
  /// Drops all steps. Returns when no transfer reads them.
  void forget() noexcept {
    for (pjrt::event& e : sent_) e.wait_quietly();
    sent_.clear();
    unused_.clear();  // arrays must not be destroyed while they are written to
    steps_ = 0;
  }
  /// The transfers that read them.
  std::span<const pjrt::event> sent() const { return sent_; }
  /// Drops all steps without waiting for transfers that may never end; their memory lasts until the process ends.
  void give_up() {
    if (sent_.empty()) return;
    keep_forever(*this);
    steps_ = 0;
  }
  /// Drops all steps. Transfers that still read them are waited for when the next step is added.
  void clear() { steps_ = 0; }
  /// Adds a step for this module. All that are there at a time are for one module.
  void add(const running_module& m, const host_arguments& from) {
    if (steps_ == 0) forget();
    const std::size_t arguments = m.arguments().size();
    if (arrays_.size() < arguments * std::size_t(m.replicas())) arrays_.resize(arguments * std::size_t(m.replicas()));
    for (int r = 0; r < m.replicas(); ++r)
      for (std::size_t i = 0; i < arguments; ++i)
        if (!m.is_state(i))
          write(arrays_[std::size_t(r) * arguments + i], m.arguments()[i], m.rows(), m.first_replica() + r, from);
    ++steps_;
  }
  std::span<const std::byte> bytes(std::size_t at, int first, int steps) const {
    const array& a = arrays_[at];
    return std::span(a.bytes).subspan(a.of_step * std::size_t(first), a.of_step * std::size_t(steps));
  }
  void read_until(pjrt::event sent) { sent_.push_back(std::move(sent)); }
  /// Keeps the target arrays until the transfers to them have ended.
  void keep(std::vector<pjrt::buffer>& arrays) noexcept { unused_.swap(arrays); }

 private:
  void write(array& to, const stablehlo::argument& a, std::int64_t rows, int replica, const host_arguments& from) {
    to.of_step = a.type.bytes();
    if (to.bytes.size() < to.of_step * std::size_t(steps_ + 1)) to.bytes.resize(to.of_step * std::size_t(steps_ + 1));
    const std::span<std::byte> own(to.bytes.data() + to.of_step * std::size_t(steps_), to.of_step);
    const std::int64_t left = from.count - replica * rows, present = std::clamp<std::int64_t>(left, 0, rows);
    const auto copy = [&](const void* bytes, std::size_t size) {
      if (size != own.size()) throw_error({"the module takes ", own.size(), " bytes for an argument that has ", size});
      std::memcpy(own.data(), bytes, size);
    };
    const auto number = [&](const auto& value) { copy(&value, sizeof value); };
    const auto copy_rows = [&](const void* all) {
      const std::size_t of_row = own.size() / std::size_t(rows), size = all ? of_row * std::size_t(present) : 0;
      if (size > 0) std::memcpy(own.data(), static_cast<const std::byte*>(all) + std::size_t(replica) * own.size(), size);
      // Padding repeats the first row: what is finite for each sample, such as its logarithm, is so for padding. Where the
      // replica has no sample, its gradients are not added.
      for (std::size_t at = size; at < own.size(); at += of_row)
        size > 0 ? void(std::copy_n(own.data(), of_row, own.data() + at))
                 : void(std::fill_n(own.data() + at, of_row, std::byte{}));
    };
    switch (a.what) {
      case stablehlo::role::input:
        return copy_rows(from.inputs[std::size_t(a.index)]);
      case stablehlo::role::truth:
        return copy_rows(from.truths[std::size_t(a.index)]);
      case stablehlo::role::sample_weight:
        if (!from.weights[std::size_t(a.index)]) return fill_with_ones(own, a.type.of);
        return copy_rows(from.weights[std::size_t(a.index)]);
      case stablehlo::role::row_count:
        return number(std::int32_t(present));
      case stablehlo::role::batch_count:
        return number(std::int32_t(from.count));
      case stablehlo::role::step_scalars:
        return copy(from.step_scalars.data(), from.step_scalars.size());
      case stablehlo::role::random_key:
        return number(from.random_key);
      default:
        throw_error({"the module has an argument for which nothing is sent, of role ", int(a.what)});
    }
  }
  static void fill_with_ones(std::span<std::byte> bytes, stablehlo::element of) {
    const auto fill = [&](auto one) {
      for (std::size_t i = 0; i < bytes.size(); i += sizeof one) std::memcpy(bytes.data() + i, &one, sizeof one);
    };
    if (of == stablehlo::element::f64)
      fill(1.0);
    else
      fill(1.0f);
  }
};

void running_module::begin(device_state& state, staged_steps& from, int first, int steps, module_call& call) {
  const std::size_t arguments = what_.arguments.size();
  call.used_.resize(arguments_.size()), call.ended_.resize(replicas_);
  call.given_up_.resize(results_.size()), call.made_.resize(results_.size());
  struct end_of_begin {
    staged_steps& from;
    module_call& call;
    bool is_good = false;
    ~end_of_begin() {
      if (is_good) return;
      from.keep(call.used_);
      call.forget();
    }
  } end{from, call};
  for (std::size_t r = 0; r < replicas_; ++r)
    for (std::size_t i = 0; i < arguments; ++i) {
      const std::size_t at = r * arguments + i;
      if (!is_state(i)) {
        auto [array, sent] = client_->begin_upload(from.bytes(at, first, steps), what_.arguments[i].type, int(r));
        call.used_[at] = std::move(array);
        from.read_until(std::move(sent));
      }
      arguments_[at] = (is_state(i) ? state.at(state_of_argument_[i], r) : call.used_[at]).handle();
    }
  for (pjrt::abi::event*& e : complete_) e = nullptr;
  code_.run(argument_lists_, arguments, result_lists_, complete_);
  end.is_good = true;
  call.results_ = what_.results.size();
  call.changes_state_ = changes_state_;
  call.is_running_ = true;
  take_results(state, call);
}

}  // namespace strata::detail
