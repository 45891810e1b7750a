// The terms of a product: their indices, and how they are cut into parts.
#pragma once
#include <algorithm>
#include <limits>

namespace strata::machine {

/// How a product with many terms is cut into parts, which are added up in their order. A part has tiles of its own, so that more
/// blocks compute the product.
struct product_parts {
  int count = 1, terms = std::numeric_limits<int>::max();  // the last part may have fewer
};

/// About `wanted` parts with equally many terms, a multiple of `depth`; the last one may have fewer. Nothing is cut where a part
/// would have more terms than an int counts.
constexpr product_parts parts_of_terms(long terms, long wanted, long depth) {
  const long each = std::max(((terms + wanted - 1) / wanted + depth - 1) / depth, 1L) * depth;
  if (each > std::numeric_limits<int>::max()) return {};
  return {int(std::max((terms + each - 1) / each, 1L)), int(each)};
}

/// Cuts the samples of a leaf into parts of at most `each` samples, unless that makes more than `most` parts. There are about
/// `least` parts or more if there are enough samples.
constexpr product_parts parts_of_samples(long samples, long each, long least, long most) {
  const long of_part = std::clamp(samples / least, 1L, each);
  return parts_of_terms(samples, std::clamp((samples + of_part - 1) / of_part, 1L, most), 1);
}

/// n / Divisor for n >= 0: a GPU divides unsigned integers faster.
template <int Divisor>
constexpr int quotient(int n) {
  return int(unsigned(n) / unsigned(Divisor));
}
/// n % Divisor for n >= 0.
template <int Divisor>
constexpr int remainder(int n) {
  return int(unsigned(n) % unsigned(Divisor));
}

/// Number first + within of the terms of a product. `first` is a multiple of Depth and the same for all threads of a block.
template <int Depth>
struct term_index {
  int first, within;

  constexpr operator int() const { return first + within; }
  /// This number divided by D. Where D is a multiple of Depth, it is the same for all threads, and so is what follows from it.
  template <int D>
  constexpr int quotient() const {
    return machine::quotient<D>(D % Depth == 0 ? first : first + within);
  }
  template <int D>
  constexpr int remainder() const {
    return D % Depth == 0 ? machine::remainder<D>(first) + within : machine::remainder<D>(first + within);
  }
};

}  // namespace strata::machine
