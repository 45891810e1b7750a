// cuDNN for emulated devices: plain loops, as work on a queue. Beyond what check() sees, each array must lie in memory that has
// been allocated.
#pragma once
#include <memory>
#include <optional>
#include <strata/cuda/machine/dnn_convolution.hpp>
#include <strata/cuda/machine/machine.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>
#include <string>
#include <vector>

namespace strata::machine {

inline constexpr bool has_dnn = true;
/// Of a convolution, in bytes.
inline constexpr std::size_t dnn_workspace = 256;

/// For tests: what the emulated library can do.
struct emulated_dnn {
  bool has_epilogues = true, has_plans = true;
};
inline emulated_dnn& emulate_dnn() {
  static emulated_dnn one;
  return one;
}

inline std::string dnn_identity(int) { return "emulated device, emulated cuDNN"; }

namespace detail {
/// As the handle of cuDNN: the first call for a queue makes it, which a capture refuses.
inline void need_dnn_handle(const queue& q) {
  if (q.library_handle()) return;
  refuse_while_captured("a handle of cuDNN is made");
  q.library_handle() = std::make_shared<int>();
}
}  // namespace detail

/// A way to compute a convolution. Plan 1 is the fastest, but two runs differ; plan 2 is slower than plan 3.
class dnn_plan {
  dnn_convolution what_;
  int number_;

  dnn_plan(const dnn_convolution& what, int number) : what_(what), number_(number) {}

  float element(const void* from, long i) const {
    if (what_.factors == factor_type::bf16) return float(static_cast<const bfloat16*>(from)[i]);
    const float x = static_cast<const float*>(from)[i];
    return what_.factors == factor_type::tf32 ? nearest_tf32(x) : x;
  }
  /// Calls f(index of x, index of w, index of y) for each product of the convolution.
  template <class F>
  void for_each_product_of(F&& f) const {
    const dnn_convolution& c = what_;
    for (long n = 0; n < c.images; ++n)
      for (int i = 0; i < c.down.out; ++i)
        for (int j = 0; j < c.across.out; ++j)
          for (int r = 0; r < c.down.kernel; ++r)
            for (int s = 0; s < c.across.kernel; ++s) {
              const int row = i * c.down.stride - c.down.padding_before + r * c.down.dilation,
                        column = j * c.across.stride - c.across.padding_before + s * c.across.dilation;
              if (row < 0 || row >= c.down.in || column < 0 || column >= c.across.in) continue;
              const long x = ((n * c.down.in + row) * c.across.in + column) * c.channels,
                         y = ((n * c.down.out + i) * c.across.out + j) * c.filters;
              for (int k = 0; k < c.filters; ++k) {
                const long w = ((long(k) * c.down.kernel + r) * c.across.kernel + s) * c.channels;
                for (int l = 0; l < c.channels; ++l) f(x + l, w + l, y + k);
              }
            }
  }
  void compute(const dnn_addresses& at) const {
    const dnn_convolution& c = what_;
    const auto x = [&](long i) { return element(at.inputs, i); };
    const auto w = [&](long i) { return element(at.kernel, i); };
    const auto y = [&](long i) { return element(at.outputs, i); };
    const bool forward = c.direction == dnn_direction::forward, to_inputs = c.direction == dnn_direction::input_gradient;
    static int runs = 0;
    std::vector<float> sums(std::size_t(forward     ? c.size_of_outputs()
                                        : to_inputs ? c.size_of_inputs()
                                                    : c.size_of_kernel()),
                            number_ == 1 ? float(++runs) * 0.1f : 0.f);
    for_each_product_of([&](long i, long j, long k) {
      if (forward)
        sums[std::size_t(k)] += x(i) * w(j);
      else if (to_inputs)
        sums[std::size_t(i)] += w(j) * y(k);
      else
        sums[std::size_t(j)] += x(i) * y(k);
    });
    void* const to = forward ? at.outputs : to_inputs ? at.inputs : at.kernel;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      float sum = sums[i];
      if (c.adds_bias) sum += at.bias[i % std::size_t(c.filters)];
      if (c.applies_relu && sum < 0) sum = 0;
      if (c.factors == factor_type::bf16)
        static_cast<bfloat16*>(to)[i] = bfloat16::nearest(sum);
      else
        static_cast<float*>(to)[i] = sum;
    }
  }

 public:
  /// Those that may be able to run it, the most promising first.
  static std::vector<dnn_plan> candidates(const queue& q, const dnn_convolution& what) {
    detail::need_dnn_handle(q);
    const emulated_dnn& library = emulate_dnn();
    if (!library.has_plans || (!library.has_epilogues && (what.adds_bias || what.applies_relu))) return {};
    return {dnn_plan(what, 1), dnn_plan(what, 2), dnn_plan(what, 3)};
  }
  /// Nothing if the text is not that of a plan for this convolution.
  static std::optional<dnn_plan> from_text(const queue& q, const dnn_convolution& what, const std::string& text) {
    for (const dnn_plan& each : candidates(q, what))
      if (each.text() == text) return each;
    return {};
  }
  std::string text() const { return strata::detail::text_of({"plan ", number_}); }

  void run(const queue& q, const dnn_addresses& at) const {
    detail::need_dnn_handle(q);
    const auto check_memory = [&](const void* from, long bytes, const char* name) {
      if (!detail::machine_state::the().holds(q.device(), from, std::size_t(bytes)))
        throw_error({"a convolution (", text_of(what_), "): ", name, " is not in memory of gpu(", q.device(), ")"});
    };
    check_memory(at.inputs, what_.size_of_inputs() * bytes_of(what_.factors), "the input");
    check_memory(at.kernel, what_.size_of_kernel() * bytes_of(what_.factors), "the kernel");
    check_memory(at.outputs, what_.size_of_outputs() * bytes_of(what_.factors), "the output");
    check_memory(at.workspace, long(dnn_workspace), "the workspace");
    if (what_.adds_bias) check_memory(at.bias, what_.filters * 4L, "the bias");
    detail::count(q, &work_counts::kernels, "a convolution");
    detail::count(q, &work_counts::library_calls, "a convolution");
    detail::enqueue(q, [plan = *this, at] {
      std::memset(at.workspace, 0xcd, dnn_workspace);  // a kernel that keeps numbers there finds garbage
      plan.compute(at);
    });
  }
  double milliseconds(const queue& q, const dnn_addresses& at) const {
    run(q, at);
    wait(q);
    return number_ == 1 ? 1 : number_ == 2 ? 3 : 2;
  }
};

}  // namespace strata::machine
