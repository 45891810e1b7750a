// A compiled module with everything that a call of it needs, so that a step allocates no arrays of handles.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <strata/concepts/ends.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace strata::detail {

/// A batch and the numbers of a step, as the arguments of a module take them from the host. Rows are contiguous.
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
  pjrt::buffer& at(std::size_t array, std::size_t replica) { return arrays_[array * replicas_ + replica]; }

  /// Whether a module that takes over the arrays has begun and not ended well: they are then neither the old nor the new ones.
  bool is_lost = false;
};

class running_module {
  std::shared_ptr<const pjrt::client> client_;
  pjrt::executable code_;
  stablehlo::module_text what_;
  std::size_t replicas_;
  std::int64_t rows_;  // of a replica
  std::vector<std::size_t> state_of_argument_, state_of_result_;
  bool changes_state_ = false;

  std::vector<pjrt::abi::buffer*> arguments_, results_;  // [replica][number]
  std::vector<pjrt::abi::buffer* const*> argument_lists_;
  std::vector<pjrt::abi::buffer**> result_lists_;
  std::vector<pjrt::abi::event*> complete_;
  std::vector<pjrt::buffer> inputs_, outputs_;
  std::vector<pjrt::event> sent_, ended_;
  std::vector<std::vector<std::byte>> padded_;

 public:
  static constexpr std::size_t no_state = ~std::size_t{0};

  /// `place`: of an argument or result that stays on the devices, its number in the device_state; no_state for any other one.
  template <class F>
  running_module(std::shared_ptr<const pjrt::client> client, pjrt::executable code, stablehlo::module_text what, int rows,
                 F&& place)
      : client_(std::move(client)),
        code_(std::move(code)),
        what_(std::move(what)),
        replicas_(std::size_t(what_.replicas)),
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
    inputs_.resize(arguments_.size());
    sent_.resize(arguments_.size());
    padded_.resize(arguments_.size());
    outputs_.resize(results_.size());
    complete_.resize(replicas_);
    ended_.resize(replicas_);
    for (std::size_t r = 0; r < replicas_; ++r) {
      argument_lists_.push_back(arguments_.data() + r * arguments);
      result_lists_.push_back(results_.data() + r * results);
    }
  }

  std::span<const stablehlo::argument> results() const { return what_.results; }
  std::span<const stablehlo::argument> arguments() const { return what_.arguments; }
  int replicas() const { return int(replicas_); }
  int rows() const { return int(rows_); }

  /// Runs the module on all replicas, and returns when it is done. Arrays of the state that the module donates are replaced by
  /// its results. Throws plugin_error; state.is_lost then says whether the state is gone.
  void run(device_state& state, const host_arguments& from) {
    const struct end_of_call {  // the batch is the caller's again
      running_module& self;
      ~end_of_call() {
        for (pjrt::event& e : self.sent_) {
          e.wait_quietly();
          e = {};
        }
        for (pjrt::event& e : self.ended_) e = {};
        for (pjrt::buffer& b : self.inputs_) b = {};
      }
    } end{*this};
    const std::size_t arguments = what_.arguments.size();
    for (std::size_t r = 0; r < replicas_; ++r)
      for (std::size_t i = 0; i < arguments; ++i) {
        const std::size_t at = r * arguments + i;
        if (state_of_argument_[i] == no_state) send(at, what_.arguments[i], int(r), from);
        arguments_[at] = (state_of_argument_[i] == no_state ? inputs_[at] : state.at(state_of_argument_[i], r)).handle();
      }
    for (pjrt::abi::event*& e : complete_) e = nullptr;
    code_.run(argument_lists_, arguments, result_lists_, complete_);
    if (changes_state_) state.is_lost = true;
    take_results(state);
    for (const pjrt::event& e : ended_) e.wait("execute");
    if (changes_state_) state.is_lost = false;
  }

  /// A result of the last run that is no state.
  const pjrt::buffer& result(std::size_t number, int replica) const {
    return outputs_[std::size_t(replica) * what_.results.size() + number];
  }

 private:
  void take_results(device_state& state) {
    const std::size_t results = what_.results.size();
    for (std::size_t r = 0; r < replicas_; ++r) {
      ended_[r] = pjrt::event(client_->of_plugin(), complete_[r]);
      for (std::size_t i = 0; i < results; ++i) {
        pjrt::buffer out(client_, results_[r * results + i]);
        (state_of_result_[i] == no_state ? outputs_[r * results + i] : state.at(state_of_result_[i], r)) = std::move(out);
      }
    }
  }

  /// How many rows of the batch replica r has.
  std::int64_t rows_of(int r, int count) const {
    const std::int64_t left = count - r * rows_;
    return left < 0 ? 0 : left < rows_ ? left : rows_;
  }

  void send(std::size_t at, const stablehlo::argument& a, int replica, const host_arguments& from) {
    const auto number = [&](const auto& value) {
      inputs_[at] = client_->upload(std::as_bytes(std::span(&value, 1)), a.type, replica);
    };
    switch (a.what) {
      case stablehlo::role::input:
        return send_rows(at, a, replica, from.inputs[std::size_t(a.index)], from.count);
      case stablehlo::role::truth:
        return send_rows(at, a, replica, from.truths[std::size_t(a.index)], from.count);
      case stablehlo::role::sample_weight:
        return send_rows(at, a, replica, from.weights[std::size_t(a.index)], from.count);
      case stablehlo::role::row_count:
        return number(std::int32_t(rows_of(replica, from.count)));
      case stablehlo::role::batch_count:
        return number(std::int32_t(from.count));
      case stablehlo::role::step_scalars:
        return begin(at, a, replica, from.step_scalars);
      case stablehlo::role::random_key:
        return number(from.random_key);
      default:
        throw_error({"the module has an argument that nothing is sent for, of role ", int(a.what)});
    }
  }
  /// The rows of this replica; those that the batch does not have are 0.
  void send_rows(std::size_t at, const stablehlo::argument& a, int replica, const void* rows, int count) {
    const std::size_t bytes = a.type.bytes(), of_row = bytes / std::size_t(rows_),
                      own = std::size_t(rows_of(replica, count)) * of_row;
    const std::byte* const first = rows && own > 0 ? static_cast<const std::byte*>(rows) + std::size_t(replica) * bytes : nullptr;
    if (first && own == bytes) return begin(at, a, replica, {first, bytes});
    std::vector<std::byte>& copy = padded_[at];
    copy.assign(bytes, std::byte{});
    if (first)
      std::memcpy(copy.data(), first, own);
    else if (!rows && a.what == stablehlo::role::sample_weight)
      fill_with_ones(copy, a.type.of);
    begin(at, a, replica, copy);
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
  void begin(std::size_t at, const stablehlo::argument& a, int replica, std::span<const std::byte> bytes) {
    std::tie(inputs_[at], sent_[at]) = client_->begin_upload(bytes, a.type, replica);
  }
};

}  // namespace strata::detail
