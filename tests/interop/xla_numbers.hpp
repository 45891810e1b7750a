// Runs modules of StableHLO on a plugin with arrays from the host, and compares the results with those of the reference.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <strata/base/random.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/find_plugin.hpp>
#include <string>
#include <vector>

namespace xla_numbers {
using namespace strata;
using namespace strata::core;

using numbers = std::vector<double>;

inline std::vector<std::byte> bytes_of(const numbers& values, stablehlo::element of) {
  std::vector<std::byte> out(values.size() * stablehlo::bytes_of(of));
  const auto fill = [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T v = T(values[i]);
      std::memcpy(out.data() + i * sizeof v, &v, sizeof v);
    }
  };
  switch (of) {
    case stablehlo::element::f64:
      return fill(0.0), out;
    case stablehlo::element::i32:
      return fill(std::int32_t{}), out;
    case stablehlo::element::ui64:
      return fill(std::uint64_t{}), out;
    default:
      return fill(0.0f), out;
  }
}
inline numbers numbers_of(std::span<const std::byte> bytes, stablehlo::element of) {
  numbers out(bytes.size() / stablehlo::bytes_of(of));
  for (std::size_t i = 0; i < out.size(); ++i) {
    float single = 0;
    if (of == stablehlo::element::f64)
      std::memcpy(&out[i], bytes.data() + 8 * i, 8);
    else
      std::memcpy(&single, bytes.data() + 4 * i, 4), out[i] = double(single);
  }
  return out;
}

/// Numbers in (-1, 1), exact in float.
inline numbers random_numbers(std::size_t n, std::uint64_t stream, double low = -1, double high = 1) {
  numbers out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = double(float(low + (high - low) * philox{stream * 7919 + 1}.uniform(i)));
  return out;
}

/// A compiled module.
class compiled_module {
  std::shared_ptr<const pjrt::client> client_ = pjrt::client::of(pjrt::plugin::load(pjrt::find_plugin()));
  stablehlo::module_text module_;
  pjrt::executable code_;

 public:
  explicit compiled_module(stablehlo::module_text module) : module_(std::move(module)), code_(client_->compile(module_)) {}

  std::vector<numbers> operator()(const std::vector<numbers>& arguments) const {
    const std::size_t count = module_.arguments.size(), results = module_.results.size();
    std::vector<pjrt::buffer> sent;
    std::vector<pjrt::abi::buffer*> in, out(results);
    for (std::size_t i = 0; i < count; ++i) {
      const stablehlo::tensor_type& type = module_.arguments[i].type;
      sent.push_back(client_->upload(bytes_of(arguments[i], type.of), type, 0));
      in.push_back(sent.back().handle());
    }
    pjrt::abi::buffer* const* const in_rows[] = {in.data()};
    pjrt::abi::buffer** const out_rows[] = {out.data()};
    pjrt::abi::event* complete[1] = {};
    code_.run(in_rows, count, out_rows, complete);
    pjrt::event(client_->of_plugin(), complete[0]).wait("run");
    std::vector<numbers> back;
    for (std::size_t i = 0; i < results; ++i) {
      const pjrt::buffer b(client_, out[i]);
      std::vector<std::byte> bytes(module_.results[i].type.bytes());
      b.copy_to_host(module_.results[i].type, bytes).wait("read");
      back.push_back(numbers_of(bytes, module_.results[i].type.of));
    }
    return back;
  }
};

/// Prints a line: what was compared, and the largest error, relative to the largest element.
inline void report(const std::string& what, const numbers& got, const numbers& expected, double tolerance) {
  double worst = got.size() == expected.size() ? 0 : 1e9, scale = 1e-3;
  for (double e : expected) scale = std::max(scale, std::abs(e));
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const double error = std::abs(got[i] - expected[i]) / scale;
    worst = std::isnan(error) ? 1e9 : std::max(worst, error);
  }
  std::printf("%s %s: error %.1e of %.1e allowed\n", worst <= tolerance ? "good" : "BAD", what.c_str(), worst, tolerance);
  std::fflush(stdout);
}

}  // namespace xla_numbers
