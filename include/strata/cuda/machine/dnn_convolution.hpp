// A convolution as cuDNN describes it, and what has to hold for it. The same description goes to the library and to its
// emulation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/blas_product.hpp>
#include <string>

namespace strata::machine {

/// The result that is computed: y from inputs x and kernel w, dx from dy and w, or dw from x and dy.
enum class dnn_direction : unsigned char { forward, input_gradient, kernel_gradient };

/// One axis of a window that slides over an image.
struct dnn_axis {
  int in = 0, out = 0, kernel = 0, stride = 1, dilation = 1, padding_before = 0, padding_after = 0;
};

/// x: (images, height, width, channels); w: (filters, kernel height, kernel width, channels); y: (images, height, width,
/// filters). What is computed are floats, the rest is of the type of factors. No groups.
struct dnn_convolution {
  dnn_direction direction = dnn_direction::forward;
  factor_type factors = factor_type::f32;
  long images = 0;
  dnn_axis down, across;
  int channels = 0, filters = 0;
  bool adds_bias = false, applies_relu = false;  // forward, for floats: relu(y + bias)
  int alignment = 16;                            // of all addresses, in bytes

  constexpr long size_of_inputs() const { return images * down.in * across.in * channels; }
  constexpr long size_of_kernel() const { return long(filters) * down.kernel * across.kernel * channels; }
  constexpr long size_of_outputs() const { return images * down.out * across.out * filters; }
};

/// The addresses of its arrays on its device.
struct dnn_addresses {
  void *inputs = nullptr, *kernel = nullptr, *outputs = nullptr;
  const float* bias = nullptr;
  void* workspace = nullptr;
};

inline std::string text_of(const dnn_convolution& c) {
  constexpr const char* directions[] = {"forward", "input gradient", "kernel gradient"};
  const auto axis = [](const dnn_axis& a) {
    return strata::detail::text_of({a.in, " to ", a.out, " kernel ", a.kernel, " stride ", a.stride, " dilation ", a.dilation,
                                    " padding ", a.padding_before, '+', a.padding_after});
  };
  return strata::detail::text_of({name_of(c.factors), ' ', directions[int(c.direction)], ", ", c.images, " images, ",
                                  axis(c.down), ", ", axis(c.across), ", ", c.channels, " to ", c.filters,
                                  c.adds_bias ? ", bias" : "", c.applies_relu ? ", relu" : "", ", at ", c.alignment});
}

/// Throws strata_error for a description that does not describe a convolution.
inline void check(const dnn_convolution& c) {
  const auto refuse = [&](const char* why) { throw_error({"a convolution (", text_of(c), "): ", why}); };
  if (c.images < 1 || c.channels < 1 || c.filters < 1) refuse("it has at least one image, channel and filter");
  for (const dnn_axis& a : {c.down, c.across}) {
    if (a.in < 1 || a.kernel < 1 || a.stride < 1 || a.dilation < 1) refuse("extents, strides and dilations are at least 1");
    if (a.padding_before < 0 || a.padding_after < 0) refuse("padding is not negative");
    const int room = a.in + a.padding_before + a.padding_after - (a.kernel - 1) * a.dilation - 1;
    if (room < 0 || a.out != room / a.stride + 1) refuse("the outputs have another extent");
  }
  if (c.direction != dnn_direction::forward && (c.adds_bias || c.applies_relu)) refuse("only forward has a bias and relu");
  if (c.factors == factor_type::bf16 && c.adds_bias) refuse("a bias needs outputs in float");
  if (c.alignment < 16 || (c.alignment & (c.alignment - 1)) != 0) refuse("an alignment is a power of two of at least 16 bytes");
}

/// Throws strata_error for addresses that are not aligned as the description says.
inline void check(const dnn_convolution& c, const dnn_addresses& at) {
  const auto check_one = [&](const void* address, const char* name) {
    if (!address || reinterpret_cast<std::uintptr_t>(address) % std::uintptr_t(c.alignment) != 0)
      throw_error({"a convolution (", text_of(c), "): the address of ", name, " is not aligned, or null"});
  };
  check_one(at.inputs, "the inputs");
  check_one(at.kernel, "the kernel");
  check_one(at.outputs, "the outputs");
  if (c.adds_bias) check_one(at.bias, "the bias");
}

}  // namespace strata::machine
