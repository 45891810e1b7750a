// zip archives: named members, read on demand and written at once.
// needs: libzip
#pragma once
#include <zip.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <strata/base/aligned_memory.hpp>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/compression.hpp>
#include <strata/io/file_kind.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::io {

/// The bytes of a member. They outlive the archive.
struct zip_bytes {
  std::shared_ptr<std::byte> memory;
  std::span<std::byte> bytes;
};

/// An archive for reading. Throws strata_error that names the file and the member; `kind` is what it should be, such as
/// "a .npz archive". Not for several threads at once.
class zip_archive {
 public:
  zip_archive(std::filesystem::path path, std::string_view kind, decompression_limits limits = {})
      : path_(std::move(path)), limits_(limits) {
    std::error_code code;
    bytes_on_disk_ = std::filesystem::file_size(path_, code);
    if (code) throw_error({"cannot read ", path_.string(), ": ", code.message()});
    int why = 0;
    archive_.reset(zip_open(path_.string().c_str(), ZIP_RDONLY, &why));
    if (!archive_) {
      (void)kind_of_file(path_);  // refuses a pointer to a file
      zip_error_t e;
      zip_error_init_with_code(&e, why);
      const std::string words = zip_error_strerror(&e);
      zip_error_fini(&e);
      throw_error({path_.string(), ": not ", kind, ": ", words});
    }
    const zip_int64_t entries = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < entries; ++i) {
      const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
      if (name == nullptr) throw_error({path_.string(), ": member ", i, ": ", zip_strerror(archive_.get())});
      names_.emplace_back(name);
    }
  }

  const std::filesystem::path& path() const { return path_; }
  /// Names in the order of the archive.
  const std::vector<std::string>& names() const { return names_; }

  /// Member `index` of names().
  zip_bytes read(std::size_t index) const {
    const auto fail = [&](const std::string& why) {
      throw_error({path_.string(), ": ", strata::detail::shown(names_[index]), ": ", why});
    };
    zip_stat_t entry;
    if (zip_stat_index(archive_.get(), index, 0, &entry) != 0) fail(zip_strerror(archive_.get()));
    // Checked before the allocation: a damaged directory must not ask for terabytes. Deflate expands a byte to at most 1032.
    if (entry.size / 1032 > bytes_on_disk_)
      fail(strata::detail::text_of({entry.size, " bytes cannot be packed in an archive of ", bytes_on_disk_}));
    if (entry.size > most_decompressed(bytes_on_disk_, limits_.max_compression_ratio))
      fail(strata::detail::text_of({entry.size, " bytes are more than ", limits_.max_compression_ratio, " times the archive of ",
                                    bytes_on_disk_, ", which max_compression_ratio forbids"}));
    const std::unique_ptr<zip_file_t, close> file(zip_fopen_index(archive_.get(), index, 0));
    if (!file) fail(zip_strerror(archive_.get()));

    const std::size_t size = static_cast<std::size_t>(entry.size);
    const std::shared_ptr<std::byte> bytes = strata::detail::allocate_shared_aligned<std::byte>(size);
    // Reads one byte more than there should be: libzip compares the checksum only at the end.
    for (std::size_t done = 0;;) {
      std::byte extra{};
      const zip_int64_t n = zip_fread(file.get(), done < size ? bytes.get() + done : &extra, done < size ? size - done : 1);
      if (n < 0) fail(strata::detail::text_of({"byte ", done, ": ", zip_error_strerror(zip_file_get_error(file.get()))}));
      if (n == 0 && done == size) break;
      if (n == 0 || done == size)
        fail(strata::detail::text_of({"byte ", done, ": expected ", size, " bytes, got ", n == 0 ? "fewer" : "more"}));
      done += static_cast<std::size_t>(n);
    }
    return {bytes, {bytes.get(), size}};
  }
  /// The member with that name. Throws if there is none, or if there are several.
  zip_bytes read(std::string_view name) const {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) throw_error({path_.string(), ": there is no member ", name});
    if (std::ranges::count(names_, name) > 1) throw_error({path_.string(), ": there are several members ", name});
    return read(std::size_t(at - names_.begin()));
  }

 private:
  struct close {
    void operator()(zip_t* archive) const { zip_discard(archive); }
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };
  std::filesystem::path path_;
  decompression_limits limits_;
  std::uintmax_t bytes_on_disk_ = 0;
  std::unique_ptr<zip_t, close> archive_;
  std::vector<std::string> names_;
};

/// A member to be written: its bytes are those of all parts, one after the other. It does not own them.
struct zip_member {
  std::string name;
  std::vector<std::span<const std::byte>> parts;
  std::string called;  // by errors
};

/// Writes an archive. If that fails, an older file is unchanged. The archive is made in memory. Throws strata_error
/// naming the file, and the member if two have the same name.
inline void write_zip_archive(const std::filesystem::path& path, std::span<const zip_member> members, bool compressed = false) {
  const auto fail = [&](const std::string& words) { throw_error({"cannot write ", path.string(), ": ", words}); };
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

  std::vector<std::vector<zip_buffer_fragment_t>> fragments(members.size());  // lives until the archive is closed
  for (std::size_t i = 0; i < members.size(); ++i) {
    const zip_member& member = members[i];
    for (const std::span<const std::byte> part : member.parts)
      if (!part.empty())  // libzip does not write there
        fragments[i].push_back(
            {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(part.data())), static_cast<zip_uint64_t>(part.size())});
    zip_source_t* source = zip_source_buffer_fragment_create(fragments[i].data(), fragments[i].size(), 0, &why);
    if (source == nullptr) fail(zip_error_strerror(&why));
    const zip_int64_t index = zip_file_add(archive.get(), member.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      fail(strata::detail::text_of({member.called, ": ", zip_strerror(archive.get())}));
    }
    if (zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                                 0) != 0)
      fail(strata::detail::text_of({member.called, ": ", zip_strerror(archive.get())}));
  }
  if (zip_close(archive.get()) != 0) fail(zip_strerror(archive.get()));
  (void)archive.release();

  atomic_file file(path);
  if (zip_source_open(memory.get()) != 0) fail(zip_error_strerror(zip_source_error(memory.get())));
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  zip_int64_t n = 0;
  while ((n = zip_source_read(memory.get(), buffer.data(), buffer.size())) > 0)
    file.write(std::span<const std::byte>(buffer).first(static_cast<std::size_t>(n)));
  if (n < 0) fail(zip_error_strerror(zip_source_error(memory.get())));
  zip_source_close(memory.get());
  file.commit();
}

}  // namespace strata::io
