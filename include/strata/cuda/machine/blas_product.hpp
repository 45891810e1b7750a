// A product of matrices as cuBLASLt describes it, and what has to hold for it. The same description goes to the library and to
// its emulation, so a wrong one is an error in both.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>

namespace strata::machine {

/// How the elements of the two factors are multiplied. bf16 lie in memory as bfloat16, the others as float. Sums are floats.
enum class factor_type : unsigned char { f32, tf32, bf16 };
constexpr const char* name_of(factor_type t) { return t == factor_type::f32 ? "f32" : t == factor_type::tf32 ? "tf32" : "bf16"; }
constexpr long bytes_of(factor_type t) { return t == factor_type::bf16 ? 2 : 4; }

/// The operation on the sums before they are stored: add a bias to each row of d, apply relu. bias_gradient also stores the sums
/// of the rows of a, the gradient of a bias.
enum class blas_epilogue : unsigned char { none, bias, relu, relu_bias, bias_gradient };
constexpr const char* name_of(blas_epilogue e) {
  constexpr const char* names[] = {"none", "bias", "relu", "relu_bias", "bias_gradient"};
  return names[int(e)];
}
constexpr bool has_bias(blas_epilogue e) { return e != blas_epilogue::none && e != blas_epilogue::relu; }

/// A matrix in memory, column after column.
struct blas_matrix {
  bool transposed = false;  // the product takes its transpose
  long leading = 0;         // elements from one column to the next
  long stride = 0;          // elements from the matrix of one product to that of the next; 0: they share one
  int alignment = 4;        // of the first element of each, in bytes
};

/// `count` products d = op(a) * op(b), where op(a) is (m, k), op(b) is (k, n) and d is (m, n).
struct blas_product {
  factor_type factors = factor_type::f32;
  long m = 0, n = 0, k = 0;
  int count = 1;
  blas_matrix a, b, d;
  blas_epilogue epilogue = blas_epilogue::none;
  long bias_stride = 0;  // elements from the bias (m) of one product to that of the next; 0: they share one
  int bias_alignment = 4;
  bool stores_bf16 = false;  // d, and a bias that is added, are bfloat16; otherwise floats

  constexpr long rows_of_a() const { return a.transposed ? k : m; }
  constexpr long rows_of_b() const { return b.transposed ? n : k; }
  /// Elements from the first to the last.
  constexpr long size_of_a() const { return size(a, rows_of_a(), a.transposed ? m : k); }
  constexpr long size_of_b() const { return size(b, rows_of_b(), b.transposed ? k : n); }
  constexpr long size_of_d() const { return size(d, m, n); }
  constexpr long bytes_of_d() const { return stores_bf16 ? 2 : 4; }
  constexpr long size_of_bias() const { return has_bias(epilogue) ? (count - 1) * bias_stride + m : 0; }

 private:
  constexpr long size(const blas_matrix& x, long rows, long columns) const {
    return (count - 1) * x.stride + (columns - 1) * x.leading + rows;
  }
};

/// The alignment of the workspace of a library, in bytes. cuBLASLt rejects others.
inline constexpr std::size_t workspace_alignment = 256;

/// The addresses of the matrices of a product on its device. All products of a queue may share one workspace.
struct blas_addresses {
  const void *a = nullptr, *b = nullptr;
  void *d = nullptr, *bias = nullptr, *workspace = nullptr;
};

/// The description without its count, which must not affect how the product is computed.
inline std::string text_of(const blas_product& p) {
  const auto matrix = [](const blas_matrix& x) {
    return strata::detail::text_of({x.transposed ? "transposed " : "", x.leading, " by ", x.stride, " at ", x.alignment});
  };
  std::string text =
      strata::detail::text_of({name_of(p.factors), p.stores_bf16 ? " to bf16 " : " ", p.m, 'x', p.n, 'x', p.k, ", a ",
                               matrix(p.a), ", b ", matrix(p.b), ", d ", matrix(p.d), ", ", name_of(p.epilogue)});
  if (has_bias(p.epilogue)) text += strata::detail::text_of({" by ", p.bias_stride, " at ", p.bias_alignment});
  return text;
}

/// Throws strata_error for a description that does not describe a product.
inline void check(const blas_product& p) {
  const auto refuse = [&](const char* why) { throw_error({"a product of matrices (", text_of(p), "): ", why}); };
  if (p.m < 1 || p.n < 1 || p.k < 1 || p.count < 1) refuse("its extents and its count are at least 1");
  if (p.stores_bf16 && p.factors != factor_type::bf16) refuse("only products of bf16 store bf16");
  if (p.stores_bf16 && p.epilogue == blas_epilogue::bias_gradient)
    refuse("the gradient of a bias is in float, so d must be, too");
  if (p.a.leading < p.rows_of_a()) refuse("columns of a overlap");
  if (p.b.leading < p.rows_of_b()) refuse("columns of b overlap");
  if (p.d.leading < p.m) refuse("columns of d overlap");
  if (p.d.transposed) refuse("d cannot be transposed");
  if (p.count > 1 && p.d.stride < (p.n - 1) * p.d.leading + p.m) refuse("results of several products overlap");
  if (p.a.stride < 0 || p.b.stride < 0 || p.bias_stride < 0) refuse("a stride is negative");
  if (p.epilogue == blas_epilogue::bias_gradient && p.count > 1 && p.bias_stride < p.m) refuse("gradients of biases overlap");
  const auto check_alignment = [&](long alignment, long bytes, long stride, const char* whose) {
    if (alignment < bytes || (alignment & (alignment - 1)) != 0)
      refuse("an alignment is a power of two, and at least the size of an element");
    if (p.count > 1 && stride * bytes % alignment != 0) refuse(whose);
  };
  check_alignment(p.a.alignment, bytes_of(p.factors), p.a.stride, "with this stride not every a is aligned");
  check_alignment(p.b.alignment, bytes_of(p.factors), p.b.stride, "with this stride not every b is aligned");
  check_alignment(p.d.alignment, p.bytes_of_d(), p.d.stride, "with this stride not every d is aligned");
  if (has_bias(p.epilogue))
    check_alignment(p.bias_alignment, p.bytes_of_d(), p.bias_stride, "with this stride not every bias is aligned");
}

/// Throws strata_error for addresses that are not aligned as the description says.
inline void check(const blas_product& p, const blas_addresses& at) {
  const auto check_one = [&](const void* address, int alignment, const char* name) {
    if (!address || reinterpret_cast<std::uintptr_t>(address) % std::uintptr_t(alignment) != 0)
      throw_error({"a product of matrices (", text_of(p), "): the address of ", name, " is not aligned, or null"});
  };
  check_one(at.a, p.a.alignment, "a");
  check_one(at.b, p.b.alignment, "b");
  check_one(at.d, p.d.alignment, "d");
  if (has_bias(p.epilogue)) check_one(at.bias, p.bias_alignment, "the bias");
  if (reinterpret_cast<std::uintptr_t>(at.workspace) % workspace_alignment != 0)
    throw_error({"a product of matrices (", text_of(p), "): the workspace does not begin at a multiple of 256 bytes"});
}

/// The alignment in bytes of addresses that are `bytes` apart, where the first one has `first`: a power of two.
constexpr int alignment_after(long bytes, int first = 64) {
  for (int i = first; i > 1; i /= 2)
    if (bytes % i == 0) return i;
  return 1;
}
inline int alignment_of(const void* address, int most = 64) {
  return alignment_after(long(reinterpret_cast<std::intptr_t>(address)), most);
}

/// An algorithm of a library for a product. Its values are meaningful for the same version of the library only.
struct blas_algorithm {
  std::uint64_t numbers[8] = {};
  bool operator==(const blas_algorithm&) const = default;
};

}  // namespace strata::machine
