// IDX files, the format of MNIST, raw or gzipped. The only header of this room that needs zlib (-lz).
#pragma once
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <strata/base/error.hpp>
#include <strata/data/array.hpp>
#include <strata/data/row_memory.hpp>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

/// An IDX file: its dimensions, and its values in row-major order.
template <class T>
struct idx {
  std::vector<std::uint32_t> dimensions;
  std::shared_ptr<const T> first;
  std::size_t size = 0;

  std::span<const T> values() const { return {first.get(), size}; }
};

namespace detail {
/// A file, decompressed if it is gzipped; every complaint names the file and the offset in the (decompressed) data.
class unzipped_file {
 public:
  explicit unzipped_file(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code code;
    bytes_on_disk_ = std::filesystem::file_size(path_, code);
    if (code) throw error(path_.string() + ": " + code.message());
    errno = 0;
    file_.reset(gzopen(path_.c_str(), "rb"));
    if (!file_) throw error(path_.string() + ": " + (errno != 0 ? std::strerror(errno) : "out of memory"));
    gzbuffer(file_.get(), 1u << 17);
    zipped_ = gzdirect(file_.get()) == 0;
  }

  /// As many bytes as there are, at most n.
  std::size_t read_some(void* to, std::size_t n) {
    std::size_t done = 0;
    while (done < n) {
      const int got =
          gzread(file_.get(), static_cast<char*>(to) + done, static_cast<unsigned>(std::min<std::size_t>(n - done, 1u << 30)));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    offset_ += done;
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) fail("the compressed data end too early");
    if (code != Z_OK && code != Z_STREAM_END) fail(code == Z_ERRNO ? std::strerror(errno) : text);
    return done;
  }
  void read(void* to, std::size_t n) {
    const std::size_t begin = offset_, got = read_some(to, n);
    if (got < n) fail("the file ends, expected " + std::to_string(begin + n) + " bytes, got " + std::to_string(begin + got));
  }
  std::uint32_t read_big_endian() {
    std::array<std::uint8_t, 4> b;
    read(b.data(), b.size());
    return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  }

  [[noreturn]] void fail(const std::string& what) const { fail(offset_, what); }
  [[noreturn]] void fail(std::size_t offset, const std::string& what) const {
    throw error(path_.string() + ": byte " + std::to_string(offset) + (zipped_ ? " of the decompressed data: " : ": ") + what);
  }
  std::size_t bytes_on_disk() const { return bytes_on_disk_; }
  /// The most bytes that can follow: deflate makes at most 1032 of one.
  std::uint64_t at_most() const {
    return zipped_ ? 1032 * std::uint64_t{bytes_on_disk_} : bytes_on_disk_ - std::min(offset_, bytes_on_disk_);
  }

 private:
  struct close {
    void operator()(gzFile file) const { gzclose_r(file); }
  };
  std::filesystem::path path_;
  std::size_t bytes_on_disk_ = 0, offset_ = 0;
  bool zipped_ = false;
  std::unique_ptr<std::remove_pointer_t<gzFile>, close> file_;
};

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
  return std::to_string(type) + " (" + (type >= 0x08 && type <= 0x0E && names[i] ? names[i] : "unknown") + ")";
}

/// With `rows` the dimensions have to be (any number, rows...).
template <class T>
idx<T> read_idx_file(const std::filesystem::path& path, const shape* rows) {
  static_assert(idx_type<T> != -1, "IDX files hold uint8, int8, int16, int32, float or double");
  unzipped_file file(path);
  std::array<std::uint8_t, 4> magic;
  file.read(magic.data(), magic.size());
  if (magic[0] != 0 || magic[1] != 0)
    file.fail(0, "an IDX file starts with bytes 0 0, got " + std::to_string(magic[0]) + " " + std::to_string(magic[1]));
  if (magic[2] != idx_type<T>)
    file.fail(2, "element type: expected " + idx_type_name(idx_type<T>) + ", got " + idx_type_name(magic[2]));
  const int rank = magic[3];
  if (rank == 0) file.fail(3, "rank: expected at least 1, got 0");
  if (rows != nullptr) {
    int least = rows->rank();
    while (least > 0 && (*rows)[least - 1] == 1) --least;  // (28, 28, 1) is also (28, 28)
    if (rank < 1 + least || rank > 1 + rows->rank())
      file.fail(3, "rank: expected " + std::to_string(1 + rows->rank()) + " for samples of shape " + text_of(*rows) + ", got " +
                       std::to_string(rank));
  }

  idx<T> result{.dimensions{}, .first{}, .size = 1};
  for (int axis = 0; axis < rank; ++axis) {
    const std::uint32_t extent = file.read_big_endian();
    const std::size_t here = std::size_t{4} * static_cast<std::size_t>(axis + 1);
    if (axis > 0 && rows != nullptr && extent != static_cast<std::uint32_t>((*rows)[axis - 1]))
      file.fail(here, "dimension " + std::to_string(axis) + ": expected " + std::to_string((*rows)[axis - 1]) + ", got " +
                          std::to_string(extent));
    result.dimensions.push_back(extent);
    // Before memory is asked for: a damaged header must not ask for terabytes.
    if (extent != 0 && result.size > file.at_most() / sizeof(T) / extent)
      file.fail(here, "dimension " + std::to_string(axis) + " is " + std::to_string(extent) + ": the file, " +
                          std::to_string(file.bytes_on_disk()) + " bytes, is too short for so many values");
    result.size *= extent;
  }

  const std::shared_ptr<T> values = make_rows<T>(result.size);
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

/// Reads an IDX file of any rank. Throws strata::error, with file, offset, expected and actual value, if the file cannot be read,
/// has another element type, is truncated or longer than its header says. http://yann.lecun.com/exdb/mnist
template <class T>
idx<T> read_idx(const std::filesystem::path& path) {
  return detail::read_idx_file<T>(path, nullptr);
}

/// Reads an IDX file of dimensions (samples, S...), where trailing ones of S may be missing. Throws strata::error as above, and
/// if rank or dimensions differ.
template <class T, shape S>
array<T, S> read_idx(const std::filesystem::path& path) {
  static constexpr shape rows = S;
  idx<T> file = detail::read_idx_file<T>(path, &rows);
  return array<T, S>(std::move(file.first), file.dimensions[0]);
}

}  // namespace strata::data
