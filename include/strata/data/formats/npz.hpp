// NumPy's .npz files: a zip archive of named .npy files.
// needs: libzip
#pragma once
#include <zip.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <strata/base/aligned_memory.hpp>
#include <strata/base/error.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/formats/npy.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/compression.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::data {

/// An open .npz file, whose arrays are read on demand. Throws strata::error that names the file and the array. Not for several
/// threads at once.
class npz_file {
 public:
  explicit npz_file(std::filesystem::path path, io::decompression_limits limits = {}) : path_(std::move(path)), limits_(limits) {
    std::error_code code;
    bytes_on_disk_ = std::filesystem::file_size(path_, code);
    if (code) throw_error("cannot read " + path_.string() + ": " + code.message());
    int why = 0;
    archive_.reset(zip_open(path_.c_str(), ZIP_RDONLY, &why));
    if (!archive_) {
      zip_error_t e;
      zip_error_init_with_code(&e, why);
      const std::string words = zip_error_strerror(&e);
      zip_error_fini(&e);
      throw_error(path_.string() + ": not a .npz archive: " + words);
    }
    const zip_int64_t entries = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < entries; ++i) {
      const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
      if (name == nullptr) throw_error(path_.string() + ": member " + std::to_string(i) + ": " + zip_strerror(archive_.get()));
      std::string_view text = name;
      if (text.ends_with(".npy")) text.remove_suffix(4);
      names_.emplace_back(text);
    }
  }

  const std::filesystem::path& path() const { return path_; }
  /// In the order of the archive, without ".npy".
  const std::vector<std::string>& names() const { return names_; }

  /// The member as an array of shape (samples, S...); see load_npy.
  template <detail::npy_number T, shape S>
  array<T, S> load(std::string_view name) const {
    return detail::array_of<T, S>(read(name));
  }

 private:
  struct close {
    void operator()(zip_t* archive) const { zip_discard(archive); }
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };

  detail::npy_bytes read(std::string_view name) const {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end())
      throw_error(path_.string() + ": there is no array '" + std::string(name) + "'" +
                  (names_.empty() ? "" : ", but " + strata::detail::first_names(names_)));
    const std::string member = path_.string() + ": " + *at + ".npy";
    const auto fail = [&](const std::string& why) { throw_error(member + ": " + why); };
    const auto index = static_cast<zip_uint64_t>(at - names_.begin());
    zip_stat_t entry;
    if (zip_stat_index(archive_.get(), index, 0, &entry) != 0) fail(zip_strerror(archive_.get()));
    // Checked before the allocation: a damaged directory must not ask for terabytes. Deflate expands a byte to at most 1032.
    if (entry.size / 1032 > bytes_on_disk_)
      fail(std::to_string(entry.size) + " bytes cannot be packed in an archive of " + std::to_string(bytes_on_disk_));
    if (entry.size > io::most_decompressed(bytes_on_disk_, limits_.max_compression_ratio))
      fail(std::to_string(entry.size) + " bytes are more than " + std::to_string(limits_.max_compression_ratio) +
           " times the archive of " + std::to_string(bytes_on_disk_) + ", which max_compression_ratio forbids");
    const std::unique_ptr<zip_file_t, close> file(zip_fopen_index(archive_.get(), index, 0));
    if (!file) fail(zip_strerror(archive_.get()));

    const std::size_t size = static_cast<std::size_t>(entry.size);
    const std::shared_ptr<std::byte> bytes = strata::detail::allocate_shared_aligned<std::byte>(size);
    // Reads one byte more than there should be: libzip compares the checksum only at the end.
    for (std::size_t done = 0;;) {
      std::byte extra{};
      const zip_int64_t n = zip_fread(file.get(), done < size ? bytes.get() + done : &extra, done < size ? size - done : 1);
      if (n < 0) fail("byte " + std::to_string(done) + ": " + zip_error_strerror(zip_file_get_error(file.get())));
      if (n == 0 && done == size) break;
      if (n == 0 || done == size)
        fail("byte " + std::to_string(done) + ": expected " + std::to_string(size) + " bytes, got " +
             (n == 0 ? "fewer" : "more"));
      done += static_cast<std::size_t>(n);
    }
    return {member, bytes, {bytes.get(), size}};
  }

  std::filesystem::path path_;
  io::decompression_limits limits_;
  std::uintmax_t bytes_on_disk_ = 0;
  std::unique_ptr<zip_t, close> archive_;
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
/// Throws strata::error naming the file, and the array if two have the same name.
inline void save_npz(const std::filesystem::path& path, std::span<const npz_member> members, npz_options options = {}) {
  const auto fail = [&](const std::string& words) { throw_error("cannot write " + path.string() + ": " + words); };
  if (members.empty()) fail("an archive needs at least one array");
  zip_error_t why;
  zip_error_init(&why);
  const std::unique_ptr<zip_error_t, decltype(&zip_error_fini)> finish(&why, zip_error_fini);

  // The archive takes one reference to its source; the other one reads the result.
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> memory(zip_source_buffer_create(nullptr, 0, 0, &why),
                                                                         zip_source_free);
  if (!memory) fail(zip_error_strerror(&why));
  zip_source_keep(memory.get());
  struct discard {
    void operator()(zip_t* z) const { zip_discard(z); }
  };
  std::unique_ptr<zip_t, discard> archive(zip_open_from_source(memory.get(), ZIP_TRUNCATE, &why));
  if (!archive) {
    zip_source_free(memory.get());
    fail(zip_error_strerror(&why));
  }

  std::vector<std::string> headers;
  headers.reserve(members.size());
  std::vector<std::array<zip_buffer_fragment_t, 2>> parts(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string& header = headers.emplace_back(members[i].values.header());
    const std::span<const std::byte> bytes = members[i].values.bytes();
    const auto fragment = [](const void* data, std::size_t size) {  // libzip does not write there
      return zip_buffer_fragment_t{static_cast<zip_uint8_t*>(const_cast<void*>(data)), size};
    };
    parts[i] = {fragment(header.data(), header.size()), fragment(bytes.data(), bytes.size())};
    zip_source_t* source = zip_source_buffer_fragment_create(parts[i].data(), bytes.empty() ? 1 : 2, 0, &why);
    if (source == nullptr) fail(zip_error_strerror(&why));
    const zip_int64_t index = zip_file_add(archive.get(), (members[i].name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      fail("array '" + members[i].name + "': " + zip_strerror(archive.get()));
    }
    const zip_int32_t method = options.compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    if (zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), method, 0) != 0)
      fail("array '" + members[i].name + "': " + zip_strerror(archive.get()));
  }
  if (zip_close(archive.get()) != 0) fail(zip_strerror(archive.get()));
  (void)archive.release();

  io::atomic_file file(path);
  if (zip_source_open(memory.get()) != 0) fail(zip_error_strerror(zip_source_error(memory.get())));
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  zip_int64_t n = 0;
  while ((n = zip_source_read(memory.get(), buffer.data(), buffer.size())) > 0)
    file.write(std::span<const std::byte>(buffer).first(static_cast<std::size_t>(n)));
  if (n < 0) fail(zip_error_strerror(zip_source_error(memory.get())));
  zip_source_close(memory.get());
  file.commit();
}
inline void save_npz(const std::filesystem::path& path, std::initializer_list<npz_member> members, npz_options options = {}) {
  save_npz(path, std::span(members.begin(), members.size()), options);
}

}  // namespace strata::data
