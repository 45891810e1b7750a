// Raw or gzipped IDX files, the format of MNIST. Needs zlib (-lz).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <strata/base/aligned_memory.hpp>
#include <strata/base/error.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/array.hpp>
#include <strata/io/compression.hpp>
#include <strata/io/unzipped_file.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

/// The dimensions and values of an IDX file, in row-major order.
template <class T>
struct idx {
  std::vector<std::uint32_t> dimensions;
  std::shared_ptr<const T> first;
  std::size_t size = 0;

  std::span<const T> values() const { return {first.get(), size}; }
};

namespace detail {
template <class T>
inline constexpr int idx_type = -1;
template <>
inline constexpr int idx_type<std::uint8_t> = 0x08;
template <>
inline constexpr int idx_type<std::int8_t> = 0x09;
template <>
inline constexpr int idx_type<std::int16_t> = 0x0B;
template <>
inline constexpr int idx_type<std::int32_t> = 0x0C;
template <>
inline constexpr int idx_type<float> = 0x0D;
template <>
inline constexpr int idx_type<double> = 0x0E;

inline std::string idx_type_name(int type) {
  constexpr std::array<const char*, 7> names{"uint8", "int8", nullptr, "int16", "int32", "float", "double"};
  const std::size_t i = static_cast<std::size_t>(type - 0x08);
  return strata::detail::text_of({type, " (", type >= 0x08 && type <= 0x0E && names[i] ? names[i] : "unknown", ")"});
}

/// Reads what precedes the values, which are of type `type` and of so many bytes each. With `rows`, the dimensions must be (any
/// number, rows...). Returns the number of values.
[[gnu::cold]] inline std::size_t read_idx_header(io::unzipped_file& file, int type, std::size_t bytes, const shape* rows,
                                                 std::vector<std::uint32_t>& dimensions) {
  std::array<std::uint8_t, 4> magic;
  file.read(magic.data(), magic.size());
  if (magic[0] != 0 || magic[1] != 0)
    file.fail(0, strata::detail::text_of({"an IDX file starts with bytes 0 0, got ", magic[0], " ", magic[1]}));
  if (magic[2] != type)
    file.fail(2, strata::detail::text_of({"element type: expected ", idx_type_name(type), ", got ", idx_type_name(magic[2])}));
  const int rank = magic[3];
  if (rank == 0) file.fail(3, "rank: expected at least 1, got 0");
  if (rows != nullptr) {
    int least = rows->rank();
    while (least > 0 && (*rows)[least - 1] == 1) --least;  // (28, 28, 1) is also (28, 28)
    if (rank < 1 + least || rank > 1 + rows->rank())
      file.fail(3, strata::detail::text_of({"rank: expected ", 1 + rows->rank(), " for samples of shape ",
                                            strata::detail::shape_text(*rows), ", got ", rank}));
  }

  std::size_t size = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const std::uint32_t extent = file.read_big_endian();
    const std::size_t here = std::size_t{4} * static_cast<std::size_t>(axis + 1);
    if (axis > 0 && rows != nullptr && extent != static_cast<std::uint32_t>((*rows)[axis - 1]))
      file.fail(here, strata::detail::text_of({"dimension ", axis, ": expected ", (*rows)[axis - 1], ", got ", extent}));
    dimensions.push_back(extent);
    // Checked before the allocation: a damaged header must not ask for terabytes.
    if (extent != 0 && size > file.at_most() / bytes / extent)
      file.fail(here, strata::detail::text_of({"dimension ", axis, " is ", extent, ": the file, ", file.bytes_on_disk(),
                                               " bytes, is too short for that many values"}));
    size *= extent;
  }
  return size;
}

template <class T>
idx<T> read_idx_file(const std::filesystem::path& path, const shape* rows, io::decompression_limits limits) {
  static_assert(idx_type<T> != -1, "IDX files hold uint8, int8, int16, int32, float or double");
  io::unzipped_file file(path, limits.max_compression_ratio);
  idx<T> result;
  result.size = read_idx_header(file, idx_type<T>, sizeof(T), rows, result.dimensions);
  file.allow(result.size * sizeof(T));
  const std::shared_ptr<T> values = strata::detail::allocate_shared_aligned<T>(result.size);
  file.read(values.get(), result.size * sizeof(T));
  if (std::uint8_t extra = 0; file.read_some(&extra, 1) != 0)
    file.fail(4 + std::size_t{4} * result.dimensions.size() + result.size * sizeof(T), "bytes follow the last value");
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little) {
    for (T& v : std::span(values.get(), result.size)) {
      auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(v);
      std::reverse(bytes.begin(), bytes.end());
      v = std::bit_cast<T>(bytes);
    }
  }
  result.first = values;
  return result;
}
}  // namespace detail

/// Reads an IDX file of any rank. Throws strata_error, with file, offset, expected and actual value, if the file cannot
/// be read, has another element type, is truncated or longer than its header says, or expands beyond the limits.
/// http://yann.lecun.com/exdb/mnist
template <class T>
idx<T> read_idx(const std::filesystem::path& path, io::decompression_limits limits = {}) {
  return detail::read_idx_file<T>(path, nullptr, limits);
}

/// Reads an IDX file of dimensions (samples, S...); trailing ones of S may be missing. Throws strata_error as above, and
/// if rank or dimensions differ.
template <class T, shape S>
array<T, S> read_idx(const std::filesystem::path& path, io::decompression_limits limits = {}) {
  static constexpr shape rows = S;
  idx<T> file = detail::read_idx_file<T>(path, &rows, limits);
  return array<T, S>(std::move(file.first), file.dimensions[0]);
}

}  // namespace strata::data
