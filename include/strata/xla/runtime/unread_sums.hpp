// The sums of loss and metrics of calls, which stay on a device until the host reads them.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <strata/base/error.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/copies_to_host.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace strata::detail {

/// The sums of calls in their order, each of one or several steps. Host memory is reused, so that a step allocates none.
template <class Program>
class unread_sums {
  struct sums_of_call {
    long number;  // of its first step
    pjrt::buffer values;
    stablehlo::tensor_type type;
  };
  static constexpr std::size_t numbers = 2 * std::tuple_size_v<metric_sums<Program>>;
  std::vector<sums_of_call> calls_;
  std::vector<std::byte> read_;
  std::vector<pjrt::event> reading_;

 public:
  /// The number of calls.
  std::size_t size() const { return calls_.size(); }
  void clear() { calls_.clear(); }
  void drop_first() { calls_.erase(calls_.begin()); }
  /// Takes the sums from a call of this module. number: of its first step.
  void add(const running_module& m, module_call& call, long number) {
    for (std::size_t i = 0; i < m.results().size(); ++i)
      if (const stablehlo::argument& r = m.results()[i]; r.what == stablehlo::role::sums)
        calls_.push_back({number, std::move(call.result(i, 0)), r.type});
  }

  /// Takes all out: f(number, sums) for each step. Waits until they have been computed; throws plugin_error.
  template <class F>
  void read(F&& f) {
    std::size_t bytes = 0;
    for (const sums_of_call& c : calls_) {
      if (c.type.size() % std::int64_t(numbers) != 0)
        throw_error({"the module has sums of ", c.type.text(), " instead of ", numbers / 2, " pairs"});
      bytes += c.type.bytes();
    }
    read_.resize(std::max(read_.size(), bytes));
    pjrt::copies_to_host copies(reading_);
    bytes = 0;
    for (const sums_of_call& c : calls_) {
      copies.begin(c.values, c.type, {read_.data() + bytes, c.type.bytes()});
      bytes += c.type.bytes();
    }
    copies.wait("read the metrics");
    const std::byte* at = read_.data();
    for (const sums_of_call& c : calls_) {
      const std::byte* const end = at + c.type.bytes();
      c.type.of == stablehlo::element::f64 ? each_step<double>(at, end, c.number, f) : each_step<float>(at, end, c.number, f);
      at = end;
    }
    clear();
  }

 private:
  template <class Number, class F>
  static void each_step(const std::byte* at, const std::byte* end, long number, F& f) {
    std::array<Number, numbers> of_step;
    for (; at < end; at += sizeof of_step) {
      std::memcpy(of_step.data(), at, sizeof of_step);
      metric_sums<Program> sums;
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] = {double(of_step[2 * k]), double(of_step[2 * k + 1])};
      f(number++, sums);
    }
  }
};

}  // namespace strata::detail
