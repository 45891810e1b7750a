// The parts of HDF5 files that weights need: groups, numeric arrays, and texts as attributes.
// needs: hdf5
#pragma once
#ifdef _WIN32
#error "a process of its own reads files of HDF5, which needs POSIX: on Windows weights are in safetensors files"
#endif
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/interop/hdf5_image.hpp>
#include <strata/interop/hdf5_process.hpp>
#include <strata/io/open_file.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

namespace detail {

inline std::vector<std::byte> bytes_of_file(const std::filesystem::path& path) {
  std::vector<std::byte> bytes;
  io::read_content(path, bytes);
  return bytes;
}

}  // namespace detail

/// An HDF5 file for reading. All of it is read at once, so that neither locks nor other writers matter, and a process of its own
/// parses it: damaged bytes that crash libhdf5 are reported as an error. Soft links, external links, data in other files and
/// filters other than those of h5py are refused. All members throw strata::error that names the file and the path within it.
class hdf5_file {
  using question = detail::hdf5_question;
  using link = detail::process_link;

  std::unique_ptr<detail::hdf5_process> process_;

 public:
  using array = detail::hdf5_array;

  explicit hdf5_file(const std::filesystem::path& path) : hdf5_file(path.string(), detail::bytes_of_file(path)) {}
  /// `name` is the name of the file in errors.
  hdf5_file(std::string name, const std::vector<std::byte>& bytes)
      : process_(std::make_unique<detail::hdf5_process>(std::move(name), bytes)) {
    process_->ask({.what = question::opened}, "", "", [](const link&) { return true; });
  }

  const std::string& name() const { return process_->name(); }

  /// Whether there is a group or an array at a path such as layers/dense/vars.
  bool has(std::string_view path) const {
    bool is_there = false;
    process_->ask({.what = question::has}, path, "", [&](const link& from) { return get_flag(from, is_there); });
    return is_there;
  }
  /// The names in a group, sorted; none if the group does not exist.
  std::vector<std::string> names_in(std::string_view path) const {
    std::vector<std::string> names;
    process_->ask({.what = question::names_in}, path, "", [&](const link& from) { return get_texts(from, names); });
    return names;
  }
  /// The array at that path; empty if there is none.
  std::optional<array> find_array(std::string_view path) const {
    bool is_there = false;
    array found;
    process_->ask({.what = question::find_array}, path, "",
                  [&](const link& from) { return get_flag(from, is_there) && (!is_there || get_array(from, found)); });
    return is_there ? std::optional(std::move(found)) : std::nullopt;
  }
  /// Reads all elements of an array as T: float, double, std::int32_t or std::int64_t. out.size() must be their number.
  template <class T>
  void read(std::string_view path, std::span<T> out) const {
    process_->ask({.what = question::read, .type = detail::hdf5_number_of<T>(), .count = out.size()}, path, "",
                  [&](const link& from) { return from.get(std::as_writable_bytes(out)); });
  }
  /// Whether a group has an attribute.
  bool has_attribute(std::string_view path, const char* attribute) const {
    bool is_there = false;
    process_->ask({.what = question::has_attribute}, path, attribute, [&](const link& from) { return get_flag(from, is_there); });
    return is_there;
  }
  /// The text, or the texts, of an attribute of a group; empty if there is none.
  std::optional<std::vector<std::string>> texts(std::string_view path, const char* attribute) const {
    bool is_there = false;
    std::vector<std::string> found;
    process_->ask({.what = question::texts}, path, attribute,
                  [&](const link& from) { return get_flag(from, is_there) && (!is_there || get_texts(from, found)); });
    return is_there ? std::optional(std::move(found)) : std::nullopt;
  }

  [[noreturn]] void fail(std::string_view path, std::string_view why) const { throw_error({name(), ": ", path, ": ", why}); }

 private:
  static bool get_flag(const link& from, bool& flag) {
    std::uint8_t value = 0;
    if (!from.get_value(value)) return false;
    flag = value != 0;
    return true;
  }
  static bool get_texts(const link& from, std::vector<std::string>& texts) {
    std::uint64_t count = 0;
    if (!from.get_value(count)) return false;
    for (; count > 0; --count)
      if (!from.get_text(texts.emplace_back())) return false;
    return true;
  }
  static bool get_array(const link& from, array& to) {
    bool is_float = false, is_whole = false;
    std::uint64_t size = 0, rank = 0;
    if (!get_flag(from, is_float) || !get_flag(from, is_whole) || !from.get_value(size) || !from.get_value(rank) || rank > 32)
      return false;
    to = {.extents = std::vector<std::uint64_t>(std::size_t(rank)), .is_float = is_float, .is_whole = is_whole, .size = size};
    return from.get(std::as_writable_bytes(std::span(to.extents)));
  }
};

}  // namespace strata
