// Checksums in the description of a data set: they distinguish data sets of the same kind and number of samples.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/hash.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/rows.hpp>
#include <strata/data/core/scratch.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace strata::data::detail {

inline std::string text_of_checksum(std::uint64_t sum) {
  return strata::detail::formatted("checksum %08x", static_cast<unsigned>(sum ^ sum >> 32));
}

/// Calls f with the first and the last of n places and some between: at most `most`.
template <class F>
void each_of_some(std::size_t n, std::size_t most, F&& f) {
  const std::size_t count = std::min(n, std::max<std::size_t>(most, 2));
  for (std::size_t k = 0; k < count; ++k) f(count == n ? k : k * (n - 1) / (count - 1));
}

/// The number of rows that a checksum reads: 16, or as many as have this many bytes together, if these are more.
inline constexpr std::size_t few_rows = 16, bytes_of_cheap_rows = std::size_t{1} << 20;

/// The checksum of some rows in memory or in a mapped file. It calls no function of the user.
template <row_source Rows>
  requires sized<Rows>
std::uint64_t checksum_of(const Rows& rows, std::size_t bytes = bytes_of_cheap_rows) {
  using shown = shown_value_t<Rows>;
  using T = std::conditional_t<std::same_as<shown, long double>, double, shown>;  // without padding
  constexpr std::size_t x{Rows::sample_shape.size()}, target = Rows::labels == label_kind::dense ? Rows::target_shape.size() : 0;
  const scratch<T> values(x + target);
  strata::detail::fnv1a sum;
  each_of_some(rows.size(), std::max(few_rows, bytes / ((x + target) * sizeof(T))), [&](std::size_t row) {
    const sample_index i{static_cast<std::uint32_t>(row)};
    std::int32_t label = 0;
    rows.write(i, i, sample_place<T>{values.data(), &label, values.data() + x}, std::identity{});
    sum.add(strata::detail::hash_of_words(std::as_bytes(std::span<const T>(values.data(), x + target))));
    sum.add(std::uint64_t(static_cast<std::uint32_t>(label)));
  });
  return sum.value();
}
template <named_source Rows>
  requires sized<Rows>
std::uint64_t checksum_of(const Rows& rows, std::size_t bytes = bytes_of_cheap_rows) {
  using layout = named_layout<typename Rows::named>;
  const scratch<std::byte> memory(layout::bytes);
  strata::detail::fnv1a sum;
  each_of_some(rows.size(), std::max(few_rows, bytes / layout::bytes), [&](std::size_t row) {
    const sample_index i{static_cast<std::uint32_t>(row)};
    rows.write(i, i, layout::place(memory.data()), std::identity{});
    layout::each([&]<class U>(std::type_identity<U>, std::size_t at, shape extents, std::string_view name) {
      sum.add(name);
      sum.add(strata::detail::hash_of_words({memory.data() + at, static_cast<std::size_t>(extents.size()) * sizeof(U)}));
    });
  });
  return sum.value();
}
/// The checksum of some texts in a range in memory.
template <std::ranges::random_access_range R>
  requires std::convertible_to<std::ranges::range_reference_t<const R>, std::string_view>
std::uint64_t checksum_of(const R& texts) {
  strata::detail::fnv1a sum;
  for (const std::string_view text : texts) sum.add(text), sum.add(std::uint64_t{0});
  return sum.value();
}

}  // namespace strata::data::detail
