// Compares a kernel's backward with central differences of its forward, in double, through the interface of kernels only.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <strata/base/meta.hpp>
#include <strata/base/precision.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/kernel/kernel.hpp>
#include <string>
#include <vector>

#include "aligned_vector.hpp"

namespace strata::test {
using namespace core;

struct gradient_options {
  /// Range of the inputs; they are spread evenly in it, in random order, so that no two are equal.
  double low = -2, high = 2.1;
  int count = 3;
  double tolerance = 1e-6;
};

/// A kernel with its type erased, so that the check below is compiled once.
struct kernel_under_test {
  std::string name;
  std::vector<shape> in;
  shape out;
  std::vector<parameter> parameters;
  kernel_code<double> code;
  int saved, scratch, scratch_per_sample, statistics, derived;
  bool reads_input, reads_output;
  label_kind labels;  // none: not a loss
};

namespace gradient_checks {

using numbers = aligned_vector<double>;  // parameters, derived layouts and scratch are aligned, as in training
inline constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

inline numbers random_numbers(std::size_t n, philox random, double low, double high) {
  numbers v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = low + (high - low) * random.uniform(i);
  return v;
}

/// All elements are at least (high - low) / n apart: no ties in max pooling, hardly any element near a kink. Two calls with
/// different `place` in (0, 1) have no element in common, so that a join such as maximum has no ties either.
inline numbers spread_numbers(std::size_t n, philox random, double low, double high, double place) {
  numbers v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = low + (high - low) * (double(i) + place) / double(n);
  for (std::size_t i = n; i > 1; --i) std::swap(v[i - 1], v[std::size_t(random.uniform(i) * double(i))]);
  return v;
}

class gradient_check {
  const kernel_under_test& k;
  gradient_options options;
  std::vector<numbers> x, w;
  numbers y, dy, saved, derived, statistics;
  std::vector<std::int32_t> labels;
  numbers targets;
  double loss[2] = {};

  struct range {
    int begin, end;
  };
  std::vector<range> whole, parts;

  std::size_t in_size(std::size_t i) const { return std::size_t(k.in[i].size()); }
  std::size_t out_size() const { return std::size_t(k.out.size()); }

 public:
  struct gradients {
    std::vector<numbers> dx, dw;
  };
  std::vector<std::string> complaints;

  gradient_check(const kernel_under_test& kernel, gradient_options o) : k(kernel), options(o) {
    const auto count = std::size_t(o.count);
    std::uint64_t seed = 1;
    for (std::size_t i = 0; i < k.in.size(); ++i) {
      const double place = (double(i) + 1) / (double(k.in.size()) + 1);
      x.push_back(spread_numbers(count * in_size(i), philox{seed++}, o.low, o.high, place));
    }
    for (const parameter& p : k.parameters) w.push_back(random_numbers(std::size_t(p.extents.size()), philox{seed++}, -0.8, 0.9));
    dy = random_numbers(count * out_size(), philox{seed++}, -1, 1);
    y.resize(count * out_size());
    saved.resize(count * std::size_t(k.saved));
    derived.resize(std::size_t(k.derived));
    statistics.resize(2 * std::size_t(k.statistics));
    whole = {{0, o.count}};
    parts = {{0, o.count - 1}, {o.count - 1, o.count}};
    if (k.labels == label_kind::sparse)
      for (std::size_t i = 0; i < count; ++i) labels.push_back(std::int32_t(philox{seed}.uniform(i) * k.out.last()));
    if (k.labels == label_kind::dense) targets = random_numbers(count * out_size(), philox{seed}, 0.1, 0.9);
  }

  void run() {
    forward(parts);
    const numbers y_of_parts = y;
    for (double v : y)
      if (!std::isfinite(v)) return complain("forward leaves elements unwritten, or not finite");
    const gradients found = backward(parts, {});
    check_differences(found);

    forward(whole);
    compare("y of the whole batch and of two parts", y, y_of_parts);
    compare("gradients of the whole batch and of two parts", backward(whole, {}), found);

    forward(parts);
    check_modes(found);
  }

 private:
  void complain(const std::string& text) { complaints.push_back(text); }

  operands<double> operands_for(range r, numbers& scratch) {
    const auto begin = std::size_t(r.begin);
    operands<double> o;
    o.count = r.end - r.begin;
    for (std::size_t i = 0; i < x.size(); ++i) o.x[i] = x[i].data() + begin * in_size(i);
    for (std::size_t i = 0; i < w.size(); ++i) o.w[i] = w[i].data();
    o.y = y.data() + begin * out_size();
    o.derived = derived.data();
    o.saved = saved.data() + begin * std::size_t(k.saved);
    scratch.assign(std::size_t(k.scratch + o.count * k.scratch_per_sample), nothing);
    o.scratch = scratch.data();
    o.statistics = statistics.data();
    o.total = options.count;
    o.random = philox{99};
    o.first_sample = 5 + r.begin;
    if (!labels.empty()) o.labels = labels.data() + begin;
    if (!targets.empty()) o.targets = targets.data() + begin * out_size();
    if (k.labels != label_kind::none) o.loss = loss;
    return o;
  }

  /// Collects statistics as a strategy does: of each part, then added up. Half 0 is for forward, half 1 for backward.
  template <class Call>
  void collect(const std::vector<range>& ranges, std::size_t half, Call call) {
    const auto n = std::size_t(k.statistics);
    std::fill_n(statistics.begin() + std::ptrdiff_t(half * n), n, 0.0);
    for (range r : ranges) {
      numbers scratch, own(2 * n, nothing);
      std::fill_n(own.begin() + std::ptrdiff_t(half * n), n, 0.0);
      operands<double> o = operands_for(r, scratch);
      o.statistics = own.data();
      call(o, r);
      for (std::size_t i = half * n; i < (half + 1) * n; ++i) statistics[i] += own[i];
    }
  }

  void forward(const std::vector<range>& ranges) {
    std::ranges::fill(y, nothing);
    std::ranges::fill(saved, nothing);
    loss[0] = loss[1] = 0;
    if (k.code.derive) {
      const double* parameters[max_group_parameters] = {};
      for (std::size_t i = 0; i < w.size(); ++i) parameters[i] = w[i].data();
      std::ranges::fill(derived, nothing);
      k.code.derive(parameters, derived.data());
    }
    if (k.code.collect) collect(ranges, 0, [&](const operands<double>& o, range) { k.code.collect(o); });
    for (range r : ranges) {
      numbers scratch;
      k.code.forward(operands_for(r, scratch));
    }
  }

  struct mode {
    bool adds = false, no_dw = false;
    int without_dx = -1;  // this input's gradient is not computed; x.size(): none of them is
  };

  gradients backward(const std::vector<range>& ranges, mode m) {
    gradients g;
    const double start = m.adds ? 0.5 : nothing;
    for (const numbers& v : x) g.dx.emplace_back(v.size(), start);
    for (const numbers& v : w) g.dw.emplace_back(v.size(), start);
    numbers hidden_x, hidden_y(y.size(), nothing);  // passed for arrays that the kernel declares not to read
    for (const numbers& v : x) hidden_x.resize(std::max(hidden_x.size(), v.size()), nothing);

    const auto backward_operands = [&](range r, numbers& scratch) {
      operands<double> o = operands_for(r, scratch);
      const auto begin = std::size_t(r.begin);
      o.dy = dy.data() + begin * out_size();
      if (k.labels != label_kind::none) o.dy = nullptr, o.loss = nullptr;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (!k.reads_input) o.x[i] = hidden_x.data();
        const bool wanted = m.without_dx != int(i) && m.without_dx != int(x.size());
        o.dx[i] = wanted ? g.dx[i].data() + begin * in_size(i) : nullptr;
        o.adds_dx[i] = m.adds;
      }
      if (!k.reads_output) o.y = hidden_y.data();
      for (std::size_t i = 0; i < w.size() && !m.no_dw; ++i)
        if (k.parameters[i].trainable) o.dw[i] = g.dw[i].data();
      o.adds_dw = m.adds || r.begin > 0;
      return o;
    };
    if (k.code.collect_backward)
      collect(ranges, 1, [&](operands<double> o, range r) {
        numbers scratch;
        double* const own = o.statistics;
        o = backward_operands(r, scratch);
        o.statistics = own;
        k.code.collect_backward(o);
      });
    for (range r : ranges) {
      numbers scratch;
      k.code.backward(backward_operands(r, scratch));
    }
    return g;
  }

  /// The derivative of sum dy * y, or of the loss: a central difference with a step of h.
  double difference(double& v) {
    const double h = 1e-5, before = v;
    v = before + h;
    forward(parts);
    const numbers above = y;
    const double loss_above = loss[0];
    v = before - h;
    forward(parts);
    v = before;
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * (above[i] - y[i]);
    return (k.labels == label_kind::none ? sum : loss_above - loss[0]) / (2 * h);
  }

  void check_array(const std::string& what, numbers& values, const numbers& gradient) {
    double worst = 0, largest = 0;
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = difference(values[i]), got = gradient[i];
      const double error = std::abs(got - expected) / std::max({std::abs(got), std::abs(expected), 1e-2});
      largest = std::max(largest, std::abs(expected));
      if (!(error <= worst)) {
        worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
        text = what + "[" + std::to_string(i) + "] is " + std::to_string(got) + ", differences say " + std::to_string(expected) +
               " (relative error " + std::to_string(worst * 1e6) + "e-6)";
      }
    }
    if (worst > options.tolerance) complain(text);
    if (largest == 0) complain(what + " is zero everywhere: nothing was checked");
  }

  void check_differences(const gradients& found) {
    for (std::size_t i = 0; i < x.size(); ++i) check_array("dx" + std::to_string(i), x[i], found.dx[i]);
    for (std::size_t i = 0; i < w.size(); ++i)
      if (k.parameters[i].trainable) check_array(std::string("d") + k.parameters[i].name, w[i], found.dw[i]);
  }

  void compare(const std::string& what, const numbers& a, const numbers& b, double offset = 0) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(std::abs(a[i] - b[i] - offset) <= 1e-11 * std::max(1.0, std::abs(b[i])))) {
        complain(what + " differ at " + std::to_string(i) + ": " + std::to_string(a[i]) + ", " + std::to_string(b[i]));
        return;
      }
  }
  void compare(const std::string& what, const gradients& a, const gradients& b, double offset = 0) {
    for (std::size_t i = 0; i < x.size(); ++i) compare(what + ", dx" + std::to_string(i), a.dx[i], b.dx[i], offset);
    for (std::size_t i = 0; i < w.size(); ++i)
      if (k.parameters[i].trainable) compare(what + ", d" + k.parameters[i].name, a.dw[i], b.dw[i], offset);
  }

  /// Checks backward when it adds instead of storing, and when gradients are left out.
  void check_modes(const gradients& found) {
    compare("gradients that are stored and added", backward(parts, {.adds = true}), found, 0.5);
    for (int without = 0; without <= int(x.size()); ++without) {
      gradients g = backward(parts, {.without_dx = without});
      for (std::size_t i = 0; i < x.size(); ++i)
        if (without == int(i) || without == int(x.size())) g.dx[i] = found.dx[i];
      compare("gradients with and without dx" + std::to_string(without), g, found);
    }
    if (!w.empty()) {
      gradients g = backward(parts, {.no_dw = true});
      g.dw = found.dw;
      compare("gradients with and without those of the parameters", g, found);
    }
  }
};

template <class Operation>
struct operations_in {
  using type = type_list<Operation>;
};
template <class... Operations>
struct operations_in<fused<Operations...>> {
  using type = type_list<Operations...>;
};

template <class Operation>
constexpr label_kind labels_of() {
  if constexpr (requires { Operation::labels; })
    return Operation::labels;
  else
    return label_kind::none;
}

}  // namespace gradient_checks

/// Errors of the kernel that Backend has for Operation (or fused<Operations...>) on inputs In...; empty if there are none.
template <class Backend, class Operation, shape... In>
std::vector<std::string> gradient_complaints(gradient_options options = {}) {
  using kernel = typename find_kernel<Backend, Operation, precision::f64, In...>::type;
  static_assert(!std::is_void_v<kernel>, "the backend has no such kernel");
  kernel_under_test k{.name = {},
                      .in = {In...},
                      .out = {},
                      .parameters = {},
                      .code = code_of<kernel, double>,
                      .saved = traits_of_kernel<kernel>.saved,
                      .scratch = traits_of_kernel<kernel>.scratch,
                      .scratch_per_sample = traits_of_kernel<kernel>.scratch_per_sample,
                      .statistics = traits_of_kernel<kernel>.statistics,
                      .derived = traits_of_kernel<kernel>.derived,
                      .reads_input = traits_of_kernel<kernel>.reads_input,
                      .reads_output = traits_of_kernel<kernel>.reads_output,
                      .labels = label_kind::none};
  std::vector<shape> at = k.in;
  const auto append = [&](const operation_info& op, label_kind labels) {
    parameter owned[max_parameters] = {};
    const int n = op.parameters(at[0], owned);
    k.parameters.insert(k.parameters.end(), owned, owned + n);
    const expected_shape out = op.output_shape(at);
    REQUIRE_FALSE(out.refused);
    k.out = out.value;
    at = {out.value};
    k.labels = labels;
  };
  [&]<class... Operations>(type_list<Operations...>) {
    (append(info_of<Operations>, gradient_checks::labels_of<Operations>()), ...);
  }(typename gradient_checks::operations_in<Operation>::type{});

  gradient_checks::gradient_check check(k, options);
  check.run();
  return check.complaints;
}

/// The complete check: forward writes all outputs; backward agrees with central differences for every input and parameter, in
/// micro-batches and at once, storing and adding, with and without each gradient; it reads only what it declares.
template <class Backend, class Operation, shape... In>
void check_gradients(gradient_options options = {}) {
  std::string text;
  for (const shape& s : {In...}) text += strata::detail::shape_text(s) + ' ';
  const auto complaints = gradient_complaints<Backend, Operation, In...>(options);
  for (const std::string& c : complaints) text += "\n" + c;
  CHECK_MESSAGE(complaints.empty(), text);
}

}  // namespace strata::test
