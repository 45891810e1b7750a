// safetensors files: named arrays behind a JSON header.  https://github.com/huggingface/safetensors#format
#pragma once
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <strata/base/exceptions.hpp>
#include <strata/base/json.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/os.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// Element types, under the names that the files use. A tensor of an unknown type can be skipped, but not read.
enum class dtype : std::uint8_t {
  BOOL,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  U16,
  I16,
  F16,
  BF16,
  U32,
  I32,
  F32,
  U64,
  I64,
  F64,
  C64,
  unknown
};
}  // namespace core

namespace detail {
struct dtype_info {
  dtype type;
  const char* name;
  std::size_t size;
};
inline constexpr dtype_info dtypes[] = {
    {dtype::BOOL, "BOOL", 1},
    {dtype::U8, "U8", 1},
    {dtype::I8, "I8", 1},
    {dtype::F8_E5M2, "F8_E5M2", 1},
    {dtype::F8_E4M3, "F8_E4M3", 1},
    {dtype::U16, "U16", 2},
    {dtype::I16, "I16", 2},
    {dtype::F16, "F16", 2},
    {dtype::BF16, "BF16", 2},
    {dtype::U32, "U32", 4},
    {dtype::I32, "I32", 4},
    {dtype::F32, "F32", 4},
    {dtype::U64, "U64", 8},
    {dtype::I64, "I64", 8},
    {dtype::F64, "F64", 8},
    {dtype::C64, "C64", 8},
    {dtype::unknown, "an unknown dtype", 1},
};
}  // namespace detail

namespace core {
constexpr const char* name_of(dtype t) { return detail::dtypes[std::size_t(t)].name; }
/// Bytes of one element.
constexpr std::size_t size_of(dtype t) { return detail::dtypes[std::size_t(t)].size; }

/// The dtype of a C++ type.
template <class T>
  requires std::is_arithmetic_v<T> && (sizeof(T) <= 8)
constexpr dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return dtype::BOOL;
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? dtype::F32 : dtype::F64;
  constexpr dtype of_unsigned[] = {dtype::U8, dtype::U16, dtype::U32, dtype::U64},
                  of_signed[] = {dtype::I8, dtype::I16, dtype::I32, dtype::I64};
  constexpr std::size_t log2 = std::size_t(std::bit_width(sizeof(T)) - 1);
  return std::is_signed_v<T> ? of_signed[log2] : of_unsigned[log2];
}

/// Extents of any rank; {} is a scalar.
using tensor_extents = std::vector<std::uint64_t>;

/// An array to be written. It does not own the bytes.
struct safetensor {
  std::string name;
  dtype type;
  tensor_extents extents;
  std::span<const std::byte> bytes;

  /// Refers to the elements of a vector, an array, a span, ...
  template <std::ranges::contiguous_range R>
    requires std::ranges::borrowed_range<R>
  static safetensor of(std::string name, tensor_extents extents, R&& values) {
    return {std::move(name), dtype_of<std::ranges::range_value_t<R>>(), std::move(extents), std::as_bytes(std::span(values))};
  }
};

using safetensors_metadata = std::map<std::string, std::string>;
}  // namespace core

namespace detail {
static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

/// Computes the bytes of such an array; false if they do not fit in 64 bits.
inline bool count_bytes(const tensor_extents& extents, dtype type, std::uint64_t& bytes) {
  bytes = size_of(type);
  bool overflow = false;
  for (const std::uint64_t extent : extents) overflow = __builtin_mul_overflow(bytes, extent, &bytes) || overflow;
  return !overflow || std::ranges::find(extents, 0u) != extents.end();
}

inline constexpr std::uint64_t max_safetensors_header = 100'000'000;  // as the reference implementation has it
}  // namespace detail

namespace core {
/// Writes all tensors at once, or leaves an older file as it was. Wide elements come first, so that all are aligned.
/// Throws strata_error naming file and tensor: a name twice, bytes that do not match the extents, text that is not UTF-8.
inline void write_safetensors(const std::filesystem::path& path, std::span<const safetensor> tensors,
                              const safetensors_metadata& metadata = {}, io::existing_link link = io::existing_link::followed) {
  std::vector<const safetensor*> order;
  for (const safetensor& t : tensors) order.push_back(&t);
  // In their order otherwise. (Newer compilers warn about std::stable_sort of libstdc++ 12, which calls what is deprecated.)
  std::ranges::sort(order, {}, [](const safetensor* t) { return std::pair(-static_cast<std::ptrdiff_t>(size_of(t->type)), t); });

  std::string text = "{";
  STRATA_TRY {
    const auto quoted = [](const std::string& s) { return nlohmann::json(s).dump(); };
    const auto begin_member = [&](const std::string& name) {
      text += detail::text_of({text.size() > 1 ? "," : "", quoted(name), ":{"});
    };
    if (!metadata.empty()) {
      begin_member("__metadata__");
      for (const char* comma = ""; const auto& [key, value] : metadata)
        text += detail::text_of({std::exchange(comma, ","), quoted(key), ":", quoted(value)});
      text += '}';
    }
    std::set<std::string_view> names{"__metadata__"};
    std::uint64_t at = 0;
    for (const safetensor* t : order) {
      const auto refuse = [&](const std::string& why) {
        throw_error({"cannot write ", path.string(), ": tensor ", detail::quoted(t->name), ' ', why});
      };
      std::uint64_t bytes = 0;
      if (t->type == dtype::unknown) refuse("has an unknown dtype");
      if (!names.insert(t->name).second) refuse("occurs twice, or has a name that the format reserves");
      if (!detail::count_bytes(t->extents, t->type, bytes) || bytes != t->bytes.size())
        refuse(detail::text_of(
            {"has ", t->bytes.size(), " bytes, which are not ", detail::shape_text(t->extents), " of ", name_of(t->type)}));
      begin_member(t->name);
      text +=
          detail::text_of({"\"dtype\":\"", name_of(t->type), "\",\"shape\":[",
                           detail::joined(t->extents.size(), ",", [&](std::size_t i) { return std::to_string(t->extents[i]); }),
                           "],\"data_offsets\":[", at, ',', at + bytes, "]}"});
      at += bytes;
    }
    text += '}';
  }
  STRATA_CATCH(const nlohmann::json::exception& e) {
    throw_error({"cannot write ", path.string(), ": a name or the metadata is not UTF-8 (", e.what(), ')'});
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > detail::max_safetensors_header)
    throw_error({"cannot write ", path.string(), ": a header of ", text.size(), " bytes is more than the format allows"});

  io::atomic_file file(path, io::unfinished_file::unnamed, link);
  const std::uint64_t length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const safetensor* t : order) file.write(t->bytes);
  file.commit();
}

/// A safetensors file that is open for reading. The whole header is checked when the file is opened; elements are read on demand.
/// All members throw strata_error that names the file, and the tensor if there is one.
class safetensors_file {
 public:
  struct entry {
    std::string name;
    dtype type;
    tensor_extents extents;
    std::uint64_t offset, bytes;  // offset: in the file

    std::uint64_t count() const { return bytes / size_of(type); }
  };

  explicit safetensors_file(std::filesystem::path path) : path_(std::move(path)) {
    file_ = io::open_to_read(path_);
    io::os::file_status status;
    if (!io::os::get_status(file_.number(), status)) io::fail_on_file("read", path_, errno);
    size_ = status.size;
    std::uint64_t length = 0;
    if (size_ < sizeof length) fail(detail::text_of({"too short for a safetensors file: ", size_, " bytes"}));
    read_at(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > size_ - sizeof length || length > detail::max_safetensors_header)
      fail(detail::text_of({"a header of ", length, " bytes in a file of ", size_, ": truncated, or not a safetensors file"}));
    std::string text(std::size_t(length), '\0');
    read_at(sizeof length, std::as_writable_bytes(std::span(text)));
    read_header(text, sizeof length + length);
  }

  const std::filesystem::path& path() const { return path_; }
  const safetensors_metadata& metadata() const { return metadata_; }
  /// The entries, sorted by name.
  std::span<const entry> entries() const { return entries_; }
  const entry* find(std::string_view name) const {
    const auto at = std::ranges::lower_bound(entries_, name, {}, &entry::name);
    return at != entries_.end() && at->name == name ? &*at : nullptr;
  }
  const entry& operator[](std::string_view name) const {
    if (const entry* e = find(name)) return *e;
    std::vector<std::string_view> names;  // clang 14 cannot read libstdc++'s views
    for (const entry& e : entries_) names.push_back(e.name);
    fail(detail::text_of(
        {"there is no tensor ", detail::quoted(name), names.empty() ? "" : ", but ", detail::first_names(names)}));
  }

  /// Reads the elements of a tensor, which must be of type T and fill `out`.
  template <class T>
  void read(const entry& e, std::span<T> out) const {
    if (e.type != dtype_of<T>())
      fail(detail::text_of({"tensor ", detail::quoted(e.name), " holds ", name_of(e.type), ", not ", name_of(dtype_of<T>())}));
    if (e.count() != out.size())
      fail(detail::text_of({"tensor ", detail::quoted(e.name), " has ", e.count(), " elements ", detail::shape_text(e.extents),
                            ", not ", out.size()}));
    read_at(e.offset, std::as_writable_bytes(out));
  }
  template <class T>
  std::vector<T> read(std::string_view name) const {
    static_assert(!std::is_same_v<T, bool>, "a vector of bool has no bytes: read into an array");
    const entry& e = (*this)[name];
    if (e.type != dtype_of<T>())
      fail(detail::text_of({"tensor ", detail::quoted(e.name), " holds ", name_of(e.type), ", not ", name_of(dtype_of<T>())}));
    std::vector<T> out(std::size_t(e.count()));
    read(e, std::span(out));
    return out;
  }
  /// The bytes of any tensor.
  std::vector<std::byte> bytes(std::string_view name) const {
    const entry& e = (*this)[name];
    std::vector<std::byte> out(std::size_t(e.bytes));
    read_at(e.offset, out);
    return out;
  }

 private:
  std::filesystem::path path_;
  io::file_descriptor file_;
  std::uint64_t size_ = 0;
  safetensors_metadata metadata_;
  std::vector<entry> entries_;

  [[noreturn]] void fail(const std::string& why) const { throw_error({path_.string(), ": ", why}); }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const std::ptrdiff_t n = io::os::read_at(file_.number(), out.data(), out.size(), offset);
      if (n < 0) io::fail_on_file("read", path_, errno);
      if (n == 0) fail("it became shorter while it was read");
      out = out.subspan(std::size_t(n));
      offset += std::uint64_t(n);
    }
  }

  /// Reads the descriptions one at a time and discards each: whenever an object ends, the parser traverses all members of the
  /// header that it keeps, and of two members with equal names it would keep only the last.
  void read_header(const std::string& text, std::uint64_t begin) {
    using json = nlohmann::json;
    if (text.empty() || text[0] != '{') fail("the header does not start with '{': not a safetensors file");
    std::set<std::string> names[2];
    std::string name;  // of the description
    const auto read = [&](int depth, json::parse_event_t event, json& parsed) {
      if (event == json::parse_event_t::object_start && depth < 2) names[depth].clear();
      if (event == json::parse_event_t::object_start ? depth >= 2 : event == json::parse_event_t::array_start && depth != 2)
        fail("the header is not nested like that of a safetensors file");
      if (event == json::parse_event_t::key) {
        if (!names[depth - 1].insert(parsed.get<std::string>()).second)
          fail(detail::text_of({"the header has ", detail::quoted(parsed.get<std::string>()), " twice"}));
        if (depth == 1) name = parsed.get<std::string>();
      }
      if (event == json::parse_event_t::value && depth == 1)
        fail(detail::text_of({"tensor ", detail::quoted(name), " is not described by an object"}));
      if (event != json::parse_event_t::object_end || depth != 1) return true;
      if (name == "__metadata__")
        read_metadata(parsed);
      else
        entries_.push_back(read_entry(name, parsed, begin));
      return false;
    };
    if (json::parse(text, read, false).is_discarded()) fail("the header is not JSON");
    std::ranges::sort(entries_, {}, &entry::name);

    // The data must be used up, each byte once.
    std::vector<const entry*> by_offset;
    for (const entry& e : entries_) by_offset.push_back(&e);
    std::ranges::sort(by_offset, {}, [](const entry* e) { return std::pair(e->offset, e->bytes); });
    std::uint64_t used = begin;
    for (const entry* e : by_offset) {
      if (e->offset != used)
        fail(detail::text_of({"tensor ", detail::quoted(e->name), " begins at byte ", e->offset - begin, " of the data, but ",
                              e->offset < used ? "overlaps another one, which ends at " : "there is a gap before it, from byte ",
                              used - begin}));
      used += e->bytes;
    }
    if (used != size_) fail(detail::text_of({"the data are ", size_ - begin, " bytes, of which the tensors use ", used - begin}));
  }

  void read_metadata(const nlohmann::json& description) {
    for (const auto& [key, value] : description.items()) {
      if (!value.is_string()) fail(detail::text_of({"the metadata ", detail::quoted(key), " is not text"}));
      metadata_[key] = value.get<std::string>();
    }
  }

  entry read_entry(const std::string& name, const nlohmann::json& description, std::uint64_t begin) const {
    const auto refuse = [&](const std::string& why) { fail(detail::text_of({"tensor ", detail::quoted(name), ": ", why})); };
    const auto member = [&](const char* key, bool of_right_kind) {
      if (!description.contains(key) || !of_right_kind)
        refuse(detail::text_of({"its '", key, "' is missing, or has the wrong type"}));
    };
    const auto numbers = [&](const char* key) {
      member(key, description.contains(key) && description[key].is_array());
      tensor_extents out;
      for (const nlohmann::json& n : description[key]) {
        if (!n.is_number_unsigned())
          refuse(detail::text_of({"its '", key, "' has ", n.dump(-1, ' ', true), ", which is not a whole number from 0"}));
        out.push_back(n.get<std::uint64_t>());
      }
      return out;
    };

    entry e{name, {}, numbers("shape"), 0, 0};
    member("dtype", description.contains("dtype") && description["dtype"].is_string());
    const std::string type = description["dtype"];
    const auto known = std::ranges::find_if(detail::dtypes, [&](const detail::dtype_info& d) { return type == d.name; });
    e.type = known == std::end(detail::dtypes) ? dtype::unknown : known->type;

    const tensor_extents at = numbers("data_offsets");
    if (at.size() != 2 || at[0] > at[1] || at[1] > size_ - begin)
      refuse(detail::text_of(
          {"its data_offsets ", detail::shape_text(at), " are not within the ", size_ - begin, " bytes of data"}));
    e.offset = begin + at[0];
    e.bytes = at[1] - at[0];
    if (e.type == dtype::unknown) return e;
    std::uint64_t bytes = 0;
    if (!detail::count_bytes(e.extents, e.type, bytes) || bytes != e.bytes)
      refuse(
          detail::text_of({detail::shape_text(e.extents), " of ", name_of(e.type), " are not the ", e.bytes, " bytes it has"}));
    return e;
  }
};
}  // namespace core

}  // namespace strata
