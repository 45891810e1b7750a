// The results of a call that has ended, read from the devices.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/program.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/copies_to_host.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <strata/xla/runtime/unread_sums.hpp>
#include <string_view>
#include <vector>

namespace strata::detail {

/// Each function reads one kind of results of a call of that module, and throws plugin_error. Memory of the host is kept.
template <class Program>
class result_reader {
  using T = typename Program::value_type;
  unread_sums<Program> sums_;
  std::vector<pjrt::event> reading_;

 public:
  /// The sums of an evaluation.
  metric_sums<Program> sums(const running_module& m, module_call& call) {
    sums_.clear();
    sums_.add(m, call, 0);
    metric_sums<Program> all{};
    sums_.read([&](long, const metric_sums<Program>& of_batch) { all = of_batch; });
    return all;
  }

  /// The gradient, of the layout's trainable size. Elements of frozen parameters are not written.
  void gradient(const running_module& m, module_call& call, std::span<T> to) {
    each(m, stablehlo::role::gradient, [&](std::size_t number, const stablehlo::argument& result) {
      T* const at = to.data() + layout_of_program<Program>.slots[result.index].offset;
      copy(call.result(number, 0), result.type, {reinterpret_cast<std::byte*>(at), result.type.bytes()}, "read the gradient");
    });
  }

  /// The predictions for each output: the rows of `count` samples, replica after replica; further rows are padding.
  void predictions(const running_module& m, module_call& call, int count, const output_rows<T>& out) {
    std::vector<std::byte> padded;
    each(m, stablehlo::role::prediction, [&](std::size_t number, const stablehlo::argument& result) {
      const std::size_t bytes = result.type.bytes(), of_row = bytes / std::size_t(m.rows());
      std::byte* to = reinterpret_cast<std::byte*>(out.at[result.index]);
      for (int r = 0, left = count; left > 0; ++r, left -= m.rows()) {
        const std::size_t own = std::size_t(std::min(left, m.rows())) * of_row;
        if (own < bytes) padded.resize(bytes);
        copy(call.result(number, r), result.type, own < bytes ? std::span(padded) : std::span(to, bytes), "read the predictions");
        if (own < bytes) std::copy_n(padded.data(), own, to);
        to += own;
      }
    });
  }

 private:
  template <class F>
  static void each(const running_module& m, stablehlo::role what, const F& f) {
    for (std::size_t i = 0; i < m.results().size(); ++i)
      if (m.results()[i].what == what) f(i, m.results()[i]);
  }
  void copy(const pjrt::buffer& from, const stablehlo::tensor_type& type, std::span<std::byte> to, std::string_view action) {
    pjrt::copies_to_host copies(reading_);
    copies.begin(from, type, to);
    copies.wait(action);
  }
};

}  // namespace strata::detail
