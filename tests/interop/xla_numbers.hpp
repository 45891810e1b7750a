// Runs modules of StableHLO on a plugin with numbers from the host, and compares the results with those of the reference.
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

/// arguments[replica][argument] -> results[replica][result].
inline std::vector<std::vector<numbers>> run(const stablehlo::module_text& module,
                                             const std::vector<std::vector<numbers>>& arguments) {
  static const auto client = pjrt::client::of(pjrt::plugin::load(pjrt::find_plugin()));
  const pjrt::executable code = client->compile(module);
  const std::size_t replicas = arguments.size(), count = module.arguments.size(), results = module.results.size();
  std::vector<std::vector<pjrt::buffer>> sent(replicas);
  std::vector<std::vector<pjrt::abi::buffer*>> in(replicas), out(replicas, std::vector<pjrt::abi::buffer*>(results));
  std::vector<pjrt::abi::buffer* const*> in_rows;
  std::vector<pjrt::abi::buffer**> out_rows;
  for (std::size_t r = 0; r < replicas; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto bytes = bytes_of(arguments[r][i], module.arguments[i].type.of);
      sent[r].push_back(client->upload(bytes, module.arguments[i].type, int(r)));
      in[r].push_back(sent[r].back().handle());
    }
    in_rows.push_back(in[r].data()), out_rows.push_back(out[r].data());
  }
  std::vector<pjrt::abi::event*> complete(replicas);
  code.run(in_rows, count, out_rows, complete);
  for (auto* e : complete) pjrt::event(client->of_plugin(), e).wait("run");
  std::vector<std::vector<numbers>> back(replicas);
  for (std::size_t r = 0; r < replicas; ++r)
    for (std::size_t i = 0; i < results; ++i) {
      const pjrt::buffer b(client, out[r][i]);
      std::vector<std::byte> bytes(module.results[i].type.bytes());
      b.copy_to_host(module.results[i].type, bytes).wait("read");
      back[r].push_back(numbers_of(bytes, module.results[i].type.of));
    }
  return back;
}

/// One line: what was compared, and the largest error, relative to the largest number.
inline void report(const std::string& what, const numbers& got, const numbers& expected, double tolerance) {
  double worst = got.size() == expected.size() ? 0 : 1e9, scale = 1e-3;
  for (double e : expected) scale = std::max(scale, std::abs(e));
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const double error = std::abs(got[i] - expected[i]) / scale;
    if (!(error <= worst)) worst = error;  // nan counts
  }
  std::printf("%s %s: error %.1e of %.1e allowed\n", worst <= tolerance ? "good" : "BAD", what.c_str(), worst, tolerance);
  std::fflush(stdout);
}

}  // namespace xla_numbers
