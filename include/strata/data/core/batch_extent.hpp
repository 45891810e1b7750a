// The batch size of a view: in its type, or known at run time only, as with the extent of a std::span.
#pragma once
#include <strata/concepts/batch_source.hpp>

namespace strata::data::detail {

/// Base of views of batches of N samples.
template <int N>
class batch_extent {
 public:
  static constexpr int batch_size = N;

 protected:
  constexpr explicit batch_extent(int) {}
};
/// Base of views whose batch size is not in the type.
template <>
class batch_extent<0> {
 public:
  constexpr int batch_size() const { return size_; }

 protected:
  constexpr explicit batch_extent(int size) : size_(size) {}

 private:
  int size_;
};

template <class B>
inline constexpr int extent_of_batches = 0;
template <strata::detail::has_batch_size_in_type B>
inline constexpr int extent_of_batches<B> = B::batch_size;

/// Base of views whose batches have the size of those of B.
template <class B>
using batch_extent_of = batch_extent<extent_of_batches<B>>;

}  // namespace strata::data::detail
