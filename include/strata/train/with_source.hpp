// A source of batches of which the passes of a trainer take batches of any size.
#pragma once
#include <strata/concepts/batch_source.hpp>
#include <type_traits>

namespace strata::detail {

/// Calls f(source), of any batch size. Copies a const source, because iterating mutates it. Other types were diagnosed by
/// data_verdict.
template <class Source, class F>
void with_source(Source& source, F&& f) {
  using own = std::remove_const_t<Source>;
  if constexpr (batch_source<Source&>) {
    f(static_cast<of_any_batch_size_t<own>&>(source));
  } else if constexpr (batch_source<own&>) {
    of_any_batch_size_t<own> copy(source);
    f(copy);
  }
}

}  // namespace strata::detail
