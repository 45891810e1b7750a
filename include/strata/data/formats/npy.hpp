// NumPy's .npy files: one array after a short header.  https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <ranges>
#include <span>
#include <strata/base/aligned_memory.hpp>
#include <strata/base/all_finite.hpp>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/sources/mapped_array.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/mapped_file.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {

/// Element types that strata and NumPy have in common.
template <class T>
concept npy_number = std::is_arithmetic_v<T> && sizeof(T) <= 8;

/// NumPy's float16.
struct half {
  std::uint16_t bits;

  explicit operator float() const {
    const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31, magnitude = bits & 0x7FFFu;
    if (magnitude < 0x0400) {  // zero and the numbers below the normal ones: multiples of 2^-24
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return sign != 0 ? -value : value;
    }
    const std::uint32_t rebias = magnitude < 0x7C00 ? 112u << 23 : 224u << 23;  // infinity and NaN keep the largest exponent
    return std::bit_cast<float>(sign | ((magnitude << 13) + rebias));
  }
};

/// A dtype: 'b' bool, 'i' int, 'u' uint, 'f' float; and the bytes of an element.
struct npy_type {
  char kind = 0;
  int size = 0;

  template <class T>
  static constexpr npy_type of() {
    return {std::same_as<T, bool>    ? 'b'
            : std::floating_point<T> ? 'f'
            : std::is_signed_v<T>    ? 'i'
                                     : 'u',
            static_cast<int>(sizeof(T))};
  }
  /// "float32"
  std::string name() const {
    const char* kinds = kind == 'b' ? "bool" : kind == 'i' ? "int" : kind == 'u' ? "uint" : "float";
    return kind == 'b' ? kinds : kinds + std::to_string(8 * size);
  }
  friend constexpr bool operator==(npy_type, npy_type) = default;
};

/// Calls f.operator()<T>() with the C++ type of a dtype of one, two, four or eight bytes.
template <class One, class Two, class Four, class Eight, class F>
void with_size(int size, F&& f) {
  if (size == 1) f.template operator()<One>();
  if (size == 2) f.template operator()<Two>();
  if (size == 4) f.template operator()<Four>();
  if (size == 8) f.template operator()<Eight>();
}
template <class F>
void with_type(npy_type t, F&& f) {
  if (t.kind == 'i')
    with_size<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(t.size, f);
  else if (t.kind == 'f')
    with_size<half, half, float, double>(t.size, f);
  else
    with_size<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(t.size, f);
}

/// A .npy file in memory, which `owner` keeps alive.
struct npy_bytes {
  std::string name;  // for errors
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;

  [[noreturn]] void fail(std::size_t offset, const std::string& what) const {
    throw_error(name + ": byte " + std::to_string(offset) + ": " + what);
  }
  [[noreturn]] void fail_at_end(std::uint64_t expected) const {
    fail(bytes.size(), "the file ends, expected " + std::to_string(expected) + " bytes, got " + std::to_string(bytes.size()));
  }
};

struct npy_header {
  npy_type type;
  bool swapped = false, fortran_order = false;
  std::vector<std::uint64_t> extents;
  std::size_t data_offset = 0, type_at = 0, shape_at = 0;  // offsets in the file
};

/// Reads the header: a dictionary in Python's notation, with exactly the keys descr, fortran_order and shape.
class npy_header_parser {
 public:
  explicit npy_header_parser(const npy_bytes& file) : file_(file) {}

  npy_header parse() {
    static constexpr std::string_view magic = "\x93NUMPY";
    if (file_.bytes.size() < 10) file_.fail_at_end(10);
    if (std::memcmp(file_.bytes.data(), magic.data(), magic.size()) != 0)
      file_.fail(0, "not a .npy file, which starts with \\x93NUMPY");
    const unsigned version = byte(6);
    if (version < 1 || version > 3) file_.fail(6, "format version: expected 1, 2 or 3, got " + std::to_string(version));
    std::size_t length = byte(8) | byte(9) << 8;
    at_ = 10;
    if (version > 1) {
      if (file_.bytes.size() < 12) file_.fail_at_end(12);
      length |= std::size_t{byte(10)} << 16 | std::size_t{byte(11)} << 24;
      at_ = 12;
    }
    if (length > file_.bytes.size() - at_) file_.fail_at_end(at_ + length);
    header_.data_offset = end_ = at_ + length;

    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (peek() != '}') {
      const std::size_t key_at = at_;
      const std::string key = quoted();
      bool* const has = key == "descr" ? &has_type : key == "fortran_order" ? &has_order : key == "shape" ? &has_shape : nullptr;
      if (has == nullptr || *has)
        file_.fail(key_at, "the header has the key " + strata::detail::quoted(key) + ", which is unknown or occurs twice");
      *has = true;
      expect(':');
      if (has == &has_type) read_type();
      if (has == &has_order) read_order();
      if (has == &has_shape) read_shape();
      if (peek() != '}') expect(',');
    }
    if (!has_type || !has_order || !has_shape) file_.fail(at_, "the header lacks descr, fortran_order or shape");
    ++at_;
    if (peek() != '\0') file_.fail(at_, "there is text after the dictionary of the header");
    return header_;
  }

 private:
  unsigned byte(std::size_t i) const { return std::to_integer<unsigned>(file_.bytes[i]); }
  /// The next character that is not a blank; '\0' at the end.
  char peek() {
    while (at_ < end_ && (byte(at_) == ' ' || byte(at_) == '\n')) ++at_;
    return at_ < end_ ? static_cast<char>(byte(at_)) : '\0';
  }
  void expect(char c) {
    if (peek() != c) file_.fail(at_, std::string("the header is damaged: expected '") + c + "' here");
    ++at_;
  }
  std::string quoted() {
    const char quote = peek() == '"' ? '"' : '\'';
    expect(quote);
    std::string text;
    for (; at_ < end_ && static_cast<char>(byte(at_)) != quote; ++at_) text += static_cast<char>(byte(at_));
    expect(quote);
    return text;
  }

  void read_type() {
    if (peek() == '[') file_.fail(at_, "the array has fields of several types: save each as an array of its own");
    header_.type_at = at_;
    const std::string text = quoted();
    if (text.find('O') != std::string::npos)
      file_.fail(header_.type_at, "dtype " + strata::detail::quoted(text) + ": pickled Python objects, not numbers");
    const auto known = [&] {
      if (text.size() != 3) return false;
      header_.type = {text[1], text[2] - '0'};
      header_.swapped = text[0] == (std::endian::native == std::endian::little ? '>' : '<') && header_.type.size > 1;
      const int size = header_.type.size;
      switch (text[1]) {
        case 'b':
          return size == 1;
        case 'i':
        case 'u':
          return size == 1 || size == 2 || size == 4 || size == 8;
        case 'f':
          return size == 2 || size == 4 || size == 8;
        default:
          return false;
      }
    };
    if (!known() || std::string_view("<>=|").find(text[0]) == std::string_view::npos)
      file_.fail(header_.type_at, "dtype " + strata::detail::quoted(text) +
                                      " is not one of bool, int8 to int64, uint8 to uint64, float16 to float64");
  }
  void read_order() {
    peek();
    const std::string_view rest(reinterpret_cast<const char*>(file_.bytes.data()) + at_, end_ - at_);
    header_.fortran_order = rest.starts_with("True");
    if (!header_.fortran_order && !rest.starts_with("False")) file_.fail(at_, "fortran_order: expected True or False");
    at_ += header_.fortran_order ? 4 : 5;
  }
  void read_shape() {
    peek();
    header_.shape_at = at_;
    expect('(');
    while (peek() != ')') {
      std::uint64_t extent = 0;
      const std::size_t begin = at_;
      for (; at_ < end_ && byte(at_) >= '0' && byte(at_) <= '9'; ++at_)
        if (__builtin_mul_overflow(extent, 10u, &extent) || __builtin_add_overflow(extent, byte(at_) - '0', &extent))
          file_.fail(begin, "an extent of the shape does not fit into 64 bits");
      if (at_ == begin) file_.fail(at_, "shape: expected a whole number from 0");
      if (at_ < end_ && byte(at_) == 'L') ++at_;  // Python 2
      header_.extents.push_back(extent);
      if (peek() != ')') expect(',');
    }
    ++at_;
  }

  const npy_bytes& file_;
  npy_header header_;
  std::size_t at_ = 0, end_ = 0;
};

/// The number of samples of shape S; trailing extents of 1 may be missing on either side. Also checks the size of the file.
template <shape S>
std::size_t npy_samples(const npy_bytes& file, const npy_header& h) {
  const auto extent_in_file = [&](std::size_t axis) { return axis < h.extents.size() ? h.extents[axis] : 1; };
  bool fits = !h.extents.empty();
  for (std::size_t axis = 1; axis < std::max<std::size_t>(h.extents.size(), 1 + std::size_t{S.rank()}); ++axis)
    fits = fits && extent_in_file(axis) == (axis <= std::size_t{S.rank()} ? std::uint64_t(S[int(axis) - 1]) : 1);
  if (!fits)
    file.fail(h.shape_at, "shape: expected any number of samples of shape " + strata::detail::shape_text(S) + ", got " +
                              strata::detail::shape_text(h.extents));

  const std::uint64_t samples = h.extents[0], sample_bytes = std::uint64_t(S.size()) * std::uint64_t(h.type.size);
  const std::uint64_t there = file.bytes.size() - h.data_offset;
  if (samples > there / sample_bytes)
    file.fail(h.shape_at, "shape " + strata::detail::shape_text(h.extents) + " of " + h.type.name() + ", " +
                              std::to_string(sample_bytes) + " bytes a sample: the file, " + std::to_string(file.bytes.size()) +
                              " bytes, is too short");
  if (samples * sample_bytes < there)
    file.fail(h.data_offset + std::size_t(samples * sample_bytes), "bytes follow the last value");
  return static_cast<std::size_t>(samples);
}

/// Reads a value of type From.
template <class From>
From read_number(const std::byte* at, bool swapped) {
  std::array<std::byte, sizeof(From)> raw;
  std::memcpy(raw.data(), at, raw.size());
  if (swapped) std::reverse(raw.begin(), raw.end());
  return std::bit_cast<From>(raw);
}

/// Copies and converts. In Fortran order the sample is the fastest index.
template <class From, class T, shape S>
void convert_npy_values(const npy_bytes& file, const npy_header& h, std::size_t samples, T* out) {
  constexpr int size = S.size();
  const std::byte* const first = file.bytes.data() + h.data_offset;
  const auto convert_one = [&](std::size_t from, std::size_t sample, int k) {
    const From value = read_number<From>(first + from * sizeof(From), h.swapped);
    T& to = out[sample * std::size_t{size} + std::size_t(k)];
    if constexpr (std::same_as<From, half>)
      to = static_cast<T>(static_cast<float>(value));
    else
      to = static_cast<T>(value);
    const auto refuse = [&](auto number) {
      file.fail(h.data_offset + from * sizeof(From), strata::detail::text_of({"value ", number, " of sample ", sample,
                                                                              " does not fit into ", npy_type::of<T>().name()}));
    };
    if constexpr (std::integral<From> && std::integral<T> && !std::same_as<T, bool>)
      if (!std::in_range<T>(value)) refuse(value);
    if constexpr (std::same_as<From, double> && std::same_as<T, float>)
      if (strata::detail::is_finite(value) && !strata::detail::is_finite(to)) refuse(value);  // also with -ffast-math
  };
  if (!h.fortran_order) {
    for (std::size_t n = 0; n < samples; ++n)
      for (int k = 0; k < size; ++k) convert_one(n * std::size_t{size} + std::size_t(k), n, k);
    return;
  }
  std::vector<std::size_t> column(std::size_t{size});  // of value k of a sample, counted in Fortran order
  for (int k = 0; k < size; ++k) {
    std::size_t stride = 1, place = 0;
    int index[4]{}, rest = k;
    for (int axis = S.rank() - 1; axis >= 0; rest /= S[axis], --axis) index[axis] = rest % S[axis];
    for (int axis = 0; axis < S.rank(); stride *= std::size_t(S[axis]), ++axis) place += std::size_t(index[axis]) * stride;
    column[std::size_t(k)] = place;
  }
  constexpr std::size_t block = 64;  // samples whose rows fit into the cache while all columns are read
  for (std::size_t begin = 0; begin < samples; begin += block)
    for (int k = 0; k < size; ++k)
      for (std::size_t n = begin; n < std::min(begin + block, samples); ++n)
        convert_one(column[std::size_t(k)] * samples + n, n, k);
}

/// The array: in the mapped file if no conversion is needed, otherwise in new memory.
template <npy_number T, shape S>
array<T, S> array_of(const npy_bytes& file) {
  const npy_header h = npy_header_parser(file).parse();
  const std::size_t samples = npy_samples<S>(file, h), count = samples * std::size_t{S.size()};
  const std::span<const std::byte> data = file.bytes.subspan(h.data_offset);

  constexpr npy_type wanted = npy_type::of<T>();
  if (std::integral<T> && (h.type.kind == 'f' || (std::same_as<T, bool> && h.type.kind != 'b')))
    file.fail(h.type_at, "dtype: " + h.type.name() + " cannot be converted to " + wanted.name());
  if (h.type.kind == 'b')
    for (std::size_t i = 0; i < data.size(); ++i)
      if (std::to_integer<int>(data[i]) > 1)
        file.fail(h.data_offset + i, "a bool is 0 or 1, got " + std::to_string(std::to_integer<int>(data[i])));

  const bool aligned = reinterpret_cast<std::uintptr_t>(data.data()) % alignof(T) == 0;
  if (h.type == wanted && !h.swapped && !h.fortran_order && aligned)
    return array<T, S>(std::shared_ptr<const T>(file.owner, reinterpret_cast<const T*>(data.data())), samples);

  const std::shared_ptr<T> values = strata::detail::allocate_shared_aligned<T>(count);
  with_type(h.type, [&]<class From>() {
    if constexpr (std::floating_point<T> || std::integral<From>) convert_npy_values<From, T, S>(file, h, samples, values.get());
  });
  return array<T, S>(values, samples);
}

inline npy_bytes map_npy(const std::filesystem::path& path) {
  auto file = std::make_shared<const io::mapped_file>(path);
  const std::span<const std::byte> bytes = file->bytes();
  return {path.string(), std::move(file), bytes};
}
}  // namespace detail

/// Reads a .npy file of shape (samples, S...), where trailing ones may be missing: (60000, 28, 28) for S = (28, 28, 1). The file
/// is mapped, not copied, if it holds T in C order and this machine's byte order; then it must not be changed during the array's
/// lifetime. Otherwise converted: from every dtype to floating-point numbers (rounded; a float64 beyond float32 is an error),
/// from integers to integers that hold the values, from Fortran order and from the other byte order. Formats 1 to 3. Throws
/// strata_error with file, offset, expected and actual value if the file cannot be read, is damaged, too short or too
/// long, of another shape, or of a dtype that is not converted.
template <detail::npy_number T, shape S>
array<T, S> load_npy(const std::filesystem::path& path) {
  return detail::array_of<T, S>(detail::map_npy(path));
}

/// Maps a .npy file that may be larger than the memory; see mapped_array, whose other options apply.
/// Throws strata_error as load_npy does, and if the file would have to be converted.
template <detail::npy_number T, shape S>
mapped_array<T, S> mapped_npy(const std::filesystem::path& path, mapped_array_options options = {}) {
  const detail::npy_bytes file = detail::map_npy(path);
  const detail::npy_header h = detail::npy_header_parser(file).parse();
  const std::size_t samples = detail::npy_samples<S>(file, h);
  if (h.type != detail::npy_type::of<T>())
    file.fail(h.type_at, "dtype: expected " + detail::npy_type::of<T>().name() + ", got " + h.type.name());
  if (h.swapped || h.fortran_order)
    file.fail(h.type_at, h.swapped ? "a file in the other byte order cannot be mapped: use load_npy"
                                   : "a file in Fortran order cannot be mapped: use load_npy");
  options.offset = h.data_offset;
  options.samples = samples;
  return mapped_array<T, S>(path, options);
}

/// An array to write. Refers to the values, which must outlive it.
class npy_values {
 public:
  template <detail::npy_number T, shape S>
  npy_values(const array<T, S>& a)
      : npy_values(a.values(), [&] {
          std::vector<std::uint64_t> extents{a.size()};
          for (int axis = 0; axis < S.rank(); ++axis) extents.push_back(std::uint64_t(S[axis]));
          return extents;
        }()) {}
  /// Contiguous values in row-major order of these extents; one dimension if no extents are given.
  /// Throws strata_error if the number of values does not match the extents.
  template <std::ranges::contiguous_range R>
    requires std::ranges::sized_range<R> && std::ranges::borrowed_range<R> && detail::npy_number<std::ranges::range_value_t<R>>
  npy_values(R&& values, std::vector<std::uint64_t> extents)
      : type_(detail::npy_type::of<std::ranges::range_value_t<R>>()),
        extents_(std::move(extents)),
        bytes_(std::as_bytes(std::span(values))) {
    std::uint64_t count = 1;
    bool overflow = false;
    for (const std::uint64_t extent : extents_) overflow = __builtin_mul_overflow(count, extent, &count) || overflow;
    if (std::ranges::find(extents_, 0u) != extents_.end()) count = 0, overflow = false;
    if (overflow || count != std::ranges::size(values))
      throw_error("npy: " + std::to_string(std::ranges::size(values)) + " values do not fill an array of shape " +
                  strata::detail::shape_text(extents_));
  }
  template <std::ranges::contiguous_range R>
    requires std::ranges::sized_range<R> && std::ranges::borrowed_range<R> && detail::npy_number<std::ranges::range_value_t<R>>
  npy_values(R&& values) : npy_values(values, {std::ranges::size(values)}) {}

  /// The bytes before the values in a file: a multiple of 64.
  std::string header() const {
    const char order = type_.size == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
    std::string text = std::string("{'descr': '") + order + type_.kind + std::to_string(type_.size) +
                       "', 'fortran_order': False, 'shape': " + strata::detail::shape_text(extents_) + ", }";
    text.append(63 - (10 + text.size()) % 64, ' ') += '\n';
    const auto low = static_cast<char>(text.size() & 0xFF), high = static_cast<char>(text.size() >> 8);
    return std::string("\x93NUMPY\x01\0", 8) + low + high + text;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  detail::npy_type type_;
  std::vector<std::uint64_t> extents_;
  std::span<const std::byte> bytes_;
};

/// Writes a .npy file for numpy.load: `save_npy("x.npy", images)`, or `save_npy("w.npy", {weights, {128, 10}})` for the values of
/// a vector. If that fails, an older file is unchanged.
/// Throws strata_error naming the file if it cannot be written.
inline void save_npy(const std::filesystem::path& path, const npy_values& values) {
  io::atomic_file file(path);
  file.write(values.header());
  file.write(values.bytes());
  file.commit();
}

}  // namespace strata::data
