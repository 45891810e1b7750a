// Leaves whose samples are cut into parts, each of which a block adds up by itself.
#pragma once
#include <algorithm>
#include <strata/cuda/machine/machine.hpp>
#include <strata/cuda/machine/product_terms.hpp>

namespace strata::machine::detail {

/// The common part of kernels of gradients over samples. Product: see gradients_of_images.
template <class Product>
struct leaf_parts {
  using value = typename Product::precision::value_type;
  static constexpr int rows = Product::kernel_rows + Product::has_row_of_ones;
  Product product;
  product_parts parts;   // of the samples of a leaf
  value* sums_of_parts;  // where there are several: (product, part, row, column)

  /// Part `number` of product z, of which the samples begin to end - 1 are added up. They are counted over all leaves.
  struct part {
    long z;
    int number, begin, end;
  };
  STRATA_DEVICE part part_of(long block) const {
    const long z = block / parts.count;
    const int number = int(block % parts.count), begin = number * parts.terms, first = product.first_sample(z);
    return {z, number, first + begin, first + std::min(begin + parts.terms, product.samples_of(z))};
  }
  STRATA_DEVICE void store_sum(const part& of, int m, int n, value sum) const {
    if (parts.count > 1)
      sums_of_parts[((of.z * parts.count + of.number) * rows + m) * Product::columns + n] = sum;
    else
      product.store(of.z, m, n, sum);
  }
};

}  // namespace strata::machine::detail
