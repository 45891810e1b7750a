// NumPy's .npz files: a zip archive of named .npy files.
// needs: libzip
#pragma once
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/formats/npy.hpp>
#include <strata/io/compression.hpp>
#include <strata/io/zip_archive.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::data {

/// An open .npz file, whose arrays are read on demand. Throws strata_error that names the file and the array. Not for
/// several threads at once.
class npz_file {
 public:
  explicit npz_file(std::filesystem::path path, io::decompression_limits limits = {})
      : archive_(std::move(path), "a .npz archive", limits) {
    for (std::string_view name : archive_.names()) {
      if (name.ends_with(".npy")) name.remove_suffix(4);
      names_.emplace_back(name);
    }
  }

  const std::filesystem::path& path() const { return archive_.path(); }
  /// Names in the order of the archive, without ".npy".
  const std::vector<std::string>& names() const { return names_; }

  /// The member as an array of shape (samples, S...); see load_npy.
  template <detail::npy_number T, shape S>
  array<T, S> load(std::string_view name) const {
    return detail::array_of<T, S>(read(name));
  }

 private:
  detail::npy_bytes read(std::string_view name) const {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end())
      throw_error({path().string(), ": there is no array ", strata::detail::quoted(name), names_.empty() ? "" : ", but ",
                   strata::detail::first_names(names_)});
    if (std::ranges::count(names_, name) > 1)  // numpy.load would return the last one
      throw_error({path().string(), ": there are several arrays ", strata::detail::quoted(name)});
    const io::zip_bytes read = archive_.read(static_cast<std::size_t>(at - names_.begin()));
    return {path().string() + ": " + strata::detail::shown(*at) + ".npy", read.memory, read.bytes};
  }

  io::zip_archive archive_;
  std::vector<std::string> names_;
};

/// Opens a .npz file, stored or compressed: `const auto mnist = data::load_npz("mnist.npz");
/// auto images = mnist.load<float, shape{28, 28, 1}>("x_train");`
inline npz_file load_npz(const std::filesystem::path& path, io::decompression_limits limits = {}) {
  return npz_file(path, limits);
}

/// A named array to write.
struct npz_member {
  std::string name;
  npy_values values;
};

struct npz_options {
  bool compressed = false;  // as numpy.savez_compressed
};

/// Writes a .npz file for numpy.load. If that fails, an older file is unchanged. The archive is made in memory.
/// `save_npz("mnist.npz", {{"x_train", images}, {"y_train", labels}}, {.compressed = true})`
/// Throws strata_error naming the file, and the array if two have the same name.
inline void save_npz(const std::filesystem::path& path, std::span<const npz_member> members, npz_options options = {}) {
  if (members.empty()) throw_error("cannot write " + path.string() + ": an archive needs at least one array");
  std::vector<std::string> headers;
  headers.reserve(members.size());
  std::vector<io::zip_member> written;
  for (const npz_member& member : members) {
    const std::string& header = headers.emplace_back(member.values.header());
    written.push_back(
        {member.name + ".npy", {std::as_bytes(std::span(header)), member.values.bytes()}, "array '" + member.name + "'"});
  }
  io::write_zip_archive(path, written, options.compressed);
}
inline void save_npz(const std::filesystem::path& path, std::initializer_list<npz_member> members, npz_options options = {}) {
  save_npz(path, std::span(members.begin(), members.size()), options);
}

}  // namespace strata::data
