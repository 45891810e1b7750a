// HDF5 files, as far as weights need them: groups, arrays of numbers, and texts as attributes.
// needs: hdf5
#pragma once
#include <fcntl.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace detail {

/// Debian's HDF5 is not for several threads at once, and prints its errors unless it is told not to.
class hdf5_call {
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock_{mutex()};
  H5E_auto2_t printer_ = nullptr;
  void* data_ = nullptr;

 public:
  hdf5_call() {
    H5Eget_auto2(H5E_DEFAULT, &printer_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  hdf5_call(const hdf5_call&) = delete;
  hdf5_call& operator=(const hdf5_call&) = delete;
  ~hdf5_call() { H5Eset_auto2(H5E_DEFAULT, printer_, data_); }
};

/// An identifier of HDF5, with the function that gives it back.
class hdf5_handle {
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;

 public:
  hdf5_handle() = default;
  hdf5_handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  hdf5_handle(hdf5_handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  hdf5_handle& operator=(hdf5_handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~hdf5_handle() {
    if (id_ >= 0) close_(id_);
  }
  explicit operator bool() const { return id_ >= 0; }
  hid_t id() const { return id_; }
};

template <class T>
hid_t hdf5_type() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
}

/// Texts of any length in UTF-8, as h5py writes them.
inline hdf5_handle hdf5_text_type() {
  hdf5_handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), H5T_VARIABLE);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return type;
}

/// A file in memory.
inline hdf5_handle hdf5_memory_access() {
  hdf5_handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.id(), std::size_t{1} << 16, false);
  return access;
}

/// HDF5 takes files in memory of equal names for the same one, and wants no file on disk to have their names.
inline std::string hdf5_memory_name() {
  static std::atomic<long> number = 0;
  return text_of({"/dev/null/strata-", number++});
}

inline std::vector<std::byte> bytes_of_file(const std::filesystem::path& path) {
  const io::file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.number(), &status) != 0) io::fail_on_file("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw_error({path.string(), ": not a regular file"});
  std::vector<std::byte> bytes(std::size_t(status.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::read(file.number(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) io::fail_on_file("read", path, errno);
    if (n == 0) throw_error({path.string(), ": it became shorter while it was read"});
    done += std::size_t(n);
  }
  return bytes;
}

}  // namespace detail

/// An HDF5 file for reading. All of it is read at once, so that neither locks nor other writers matter. Soft links, external
/// links, data in other files and filters other than those of h5py are refused. All members throw strata::error that names the
/// file and the path within it.
class hdf5_file {
 public:
  /// What is known of an array before it is read.
  struct array {
    std::vector<std::uint64_t> extents;
    bool is_float = false, is_whole = false;
    std::size_t size = 0;  // bytes of an element

    std::uint64_t count() const {
      std::uint64_t n = 1;
      for (const std::uint64_t extent : extents) n *= extent;
      return n;
    }
  };

  explicit hdf5_file(const std::filesystem::path& path) : hdf5_file(path.string(), detail::bytes_of_file(path)) {}
  /// `name` is what errors call the file.
  hdf5_file(std::string name, std::vector<std::byte> bytes) : name_(std::move(name)) {
    const detail::hdf5_call call;
    static constexpr unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    if (bytes.size() < sizeof signature ||
        !std::ranges::equal(std::span(bytes).first(sizeof signature), std::as_bytes(std::span(signature))))
      throw_error({name_, ": not an HDF5 file"});
    const detail::hdf5_handle access = detail::hdf5_memory_access();
    if (H5Pset_file_image(access.id(), bytes.data(), bytes.size()) < 0) throw_error({name_, ": out of memory"});
    file_ = {H5Fopen(detail::hdf5_memory_name().c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose};
    if (!file_) throw_error({name_, ": damaged, or an HDF5 file of a newer version"});
  }

  const std::string& name() const { return name_; }

  /// Whether there is a group or an array at a path such as layers/dense/vars.
  bool has(std::string_view path) const {
    const detail::hdf5_call call;
    return find(path).has_value();
  }
  /// The names in a group, sorted; none if there is no such group.
  std::vector<std::string> names_in(std::string_view path) const {
    const detail::hdf5_call call;
    std::vector<std::string> names;
    const std::optional<detail::hdf5_handle> group = find(path);
    if (!group || H5Iget_type(group->id()) != H5I_GROUP) return names;
    const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* to) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(name);
      return herr_t{0};
    };
    hsize_t at = 0;
    if (H5Literate(group->id(), H5_INDEX_NAME, H5_ITER_INC, &at, collect, &names) < 0) fail(path, "damaged");
    std::ranges::sort(names);
    return names;
  }
  /// Empty if there is nothing at that path.
  std::optional<array> find_array(std::string_view path) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> found = find(path);
    if (!found) return {};
    return describe(found->id(), path);
  }
  /// All numbers of an array, converted to T; out.size() has to be their number.
  template <class T>
  void read(std::string_view path, std::span<T> out) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> found = find(path);
    if (!found) fail(path, "missing");
    const array about = describe(found->id(), path);
    if (!about.is_float && !about.is_whole) fail(path, "holds no numbers");
    if (about.count() != out.size()) fail(path, detail::text_of({"has ", about.count(), " elements, not ", out.size()}));
    if (H5Dread(found->id(), detail::hdf5_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) < 0) fail(path, "damaged");
  }
  /// Whether a group has an attribute.
  bool has_attribute(std::string_view path, const char* attribute) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> owner = find(path);
    return owner && H5Aexists(owner->id(), attribute) > 0;
  }
  /// The text, or the texts, of an attribute of a group; empty if there is none. HDF5 1.10 does not stand all damaged texts.
  std::optional<std::vector<std::string>> texts(std::string_view path, const char* attribute) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> owner = find(path);
    if (!owner || H5Aexists(owner->id(), attribute) <= 0) return {};
    const auto damaged = [&] { fail(path, detail::text_of({"its attribute ", attribute, " is damaged, or no text"})); };
    const detail::hdf5_handle opened(H5Aopen(owner->id(), attribute, H5P_DEFAULT), H5Aclose);
    const detail::hdf5_handle space(opened ? H5Aget_space(opened.id()) : -1, H5Sclose);
    const detail::hdf5_handle type(opened ? H5Aget_type(opened.id()) : -1, H5Tclose);
    if (!space || !type) damaged();
    const hssize_t count = H5Sget_simple_extent_npoints(space.id());
    std::vector<std::string> out;
    if (count == 0) return out;  // h5py writes no texts as an array of no numbers
    if (count < 0 || count > 1 << 20 || H5Tget_class(type.id()) != H5T_STRING) damaged();
    if (H5Tis_variable_str(type.id()) > 0) {
      std::vector<char*> read(std::size_t(count), nullptr);
      const detail::hdf5_handle memory = detail::hdf5_text_type();
      H5Tset_cset(memory.id(), H5Tget_cset(type.id()));
      if (H5Aread(opened.id(), memory.id(), read.data()) < 0) damaged();
      for (const char* text : read) out.emplace_back(text ? text : "");
      H5Dvlen_reclaim(memory.id(), space.id(), H5P_DEFAULT, read.data());
    } else {
      const std::size_t size = H5Tget_size(type.id());
      if (size == 0 || H5Aget_storage_size(opened.id()) != size * std::size_t(count)) damaged();
      std::string read(size * std::size_t(count), '\0');
      if (H5Aread(opened.id(), type.id(), read.data()) < 0) damaged();
      for (std::size_t i = 0; i < std::size_t(count); ++i) {
        const std::string_view one = std::string_view(read).substr(i * size, size);
        out.emplace_back(one.substr(0, one.find('\0')));
      }
    }
    return out;
  }

  [[noreturn]] void fail(std::string_view path, std::string_view why) const { throw_error({name_, ": ", path, ": ", why}); }

 private:
  std::string name_;
  detail::hdf5_handle file_;

  /// Follows a path, step by step, so that each link on it is looked at.
  std::optional<detail::hdf5_handle> find(const std::string_view whole) const {
    std::string_view path = whole;
    detail::hdf5_handle at(H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose);
    if (!at) fail("/", "damaged");
    while (!path.empty()) {  // (views::split does not compile with clang 14)
      const std::string step(path.substr(0, path.find('/')));
      path.remove_prefix(std::min(path.size(), step.size() + 1));
      if (step.empty()) continue;
      if (H5Iget_type(at.id()) != H5I_GROUP || H5Lexists(at.id(), step.c_str(), H5P_DEFAULT) <= 0) return {};
      H5L_info_t link;
      if (H5Lget_info(at.id(), step.c_str(), &link, H5P_DEFAULT) < 0) fail(whole, "damaged");
      if (link.type == H5L_TYPE_SOFT) fail(whole, detail::text_of({"'", step, "' is a soft link, which is not followed"}));
      if (link.type != H5L_TYPE_HARD)
        fail(whole, detail::text_of({"'", step, "' is a link to another file, which is not followed"}));
      at = detail::hdf5_handle(H5Oopen(at.id(), step.c_str(), H5P_DEFAULT), H5Oclose);
      if (!at) fail(whole, "damaged");
    }
    return at;
  }

  array describe(hid_t id, std::string_view path) const {
    if (H5Iget_type(id) != H5I_DATASET) fail(path, "not an array");
    const detail::hdf5_handle space(H5Dget_space(id), H5Sclose), type(H5Dget_type(id), H5Tclose),
        creation(H5Dget_create_plist(id), H5Pclose);
    if (!space || !type || !creation) fail(path, "damaged");
    const int rank = H5Sget_simple_extent_ndims(space.id());
    if (rank < 0 || H5Sget_simple_extent_type(space.id()) == H5S_NULL) fail(path, "has no extents");
    std::vector<hsize_t> extents(std::size_t(rank) + 1);
    H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
    array out;
    out.extents.assign(extents.begin(), extents.begin() + rank);
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : out.extents)
      if (__builtin_mul_overflow(elements, extent, &elements)) fail(path, "its extents are too large");
    out.is_float = H5Tget_class(type.id()) == H5T_FLOAT;
    out.is_whole = H5Tget_class(type.id()) == H5T_INTEGER;
    out.size = H5Tget_size(type.id());

    if (H5Pget_external_count(creation.id()) > 0) fail(path, "its numbers are in another file, which is not read");
    const H5D_layout_t layout = H5Pget_layout(creation.id());
    if (layout == H5D_VIRTUAL) fail(path, "its numbers are in another file, which is not read");
    for (int k = 0, filters = H5Pget_nfilters(creation.id()); k < filters; ++k) {
      unsigned flags = 0, settings = 0;
      std::size_t count = 0;
      const H5Z_filter_t filter = H5Pget_filter2(creation.id(), unsigned(k), &flags, &count, nullptr, 0, nullptr, &settings);
      if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
        fail(path, detail::text_of({"it is packed by filter ", int(filter), ", which is not read"}));
    }
    if (layout == H5D_CHUNKED) {  // a chunk is unpacked as a whole, so that a large one of a small array is an attack
      std::vector<hsize_t> chunk(std::size_t(rank) + 1);
      std::uint64_t largest = 1;
      if (H5Pget_chunk(creation.id(), rank, chunk.data()) != rank) fail(path, "damaged");
      for (int k = 0; k < rank; ++k) largest *= std::min<std::uint64_t>(chunk[std::size_t(k)], 1u << 20);
      if (largest > std::max<std::uint64_t>(1u << 20, 2 * elements)) fail(path, "its chunks are larger than the array");
    }
    return out;
  }
};

/// An HDF5 file that is made in memory. Paths are made as they are named. Throws strata::error that names the path.
class hdf5_image {
 public:
  /// `name` is what errors call the file.
  explicit hdf5_image(std::string name) : name_(std::move(name)) {
    const detail::hdf5_call call;
    const detail::hdf5_handle access = detail::hdf5_memory_access();
    file_ = {H5Fcreate(detail::hdf5_memory_name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose};
    links_ = {H5Pcreate(H5P_LINK_CREATE), H5Pclose};
    if (!file_ || !links_ || H5Pset_create_intermediate_group(links_.id(), 1) < 0) fail("/");
  }

  void group(const std::string& path) {
    const detail::hdf5_call call;
    (void)open_group(path);
  }
  template <class T>
  void array(const std::string& path, std::span<const std::uint64_t> extents, std::span<const T> values) {
    const detail::hdf5_call call;
    const std::vector<hsize_t> sizes(extents.begin(), extents.end());
    const detail::hdf5_handle space(
        sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(int(sizes.size()), sizes.data(), nullptr), H5Sclose);
    const detail::hdf5_handle set(
        H5Dcreate2(file_.id(), path.c_str(), detail::hdf5_type<T>(), space.id(), links_.id(), H5P_DEFAULT, H5P_DEFAULT),
        H5Dclose);
    if (!set || H5Dwrite(set.id(), detail::hdf5_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) fail(path);
  }
  template <class T>
  void number(const std::string& path, T value) {
    array(path, {}, std::span<const T>(&value, 1));
  }
  /// One text as an attribute of a group.
  void text(const std::string& path, const char* attribute, const std::string& value) {
    const detail::hdf5_call call;
    const detail::hdf5_handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const char* const at = value.c_str();
    write_attribute(path, attribute, space, &at);
  }
  /// Several. Many long ones do not fit into an attribute, as in Keras' .h5 files: then they are an error.
  void texts(const std::string& path, const char* attribute, const std::vector<std::string>& values) {
    const detail::hdf5_call call;
    const hsize_t count = values.size();
    const detail::hdf5_handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    std::vector<const char*> at;
    for (const std::string& value : values) at.push_back(value.c_str());
    at.push_back(nullptr);  // HDF5 refuses to write nothing from nowhere
    write_attribute(path, attribute, space, at.data());
  }
  /// The file so far.
  std::vector<std::byte> bytes() const {
    const detail::hdf5_call call;
    const ssize_t size = H5Fflush(file_.id(), H5F_SCOPE_LOCAL) < 0 ? -1 : H5Fget_file_image(file_.id(), nullptr, 0);
    std::vector<std::byte> out(size > 0 ? std::size_t(size) : 0);
    if (size <= 0 || H5Fget_file_image(file_.id(), out.data(), out.size()) < 0) fail("/");
    return out;
  }

 private:
  std::string name_;
  detail::hdf5_handle file_, links_;

  [[noreturn]] void fail(std::string_view path) const { throw_error({"cannot write ", name_, ": ", path, ": HDF5 refuses it"}); }

  detail::hdf5_handle open_group(const std::string& path) {
    if (path.empty() || path == "/") return {H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose};
    hid_t at = H5Gopen2(file_.id(), path.c_str(), H5P_DEFAULT);
    if (at < 0) at = H5Gcreate2(file_.id(), path.c_str(), links_.id(), H5P_DEFAULT, H5P_DEFAULT);
    if (at < 0) fail(path);
    return {at, H5Gclose};
  }
  void write_attribute(const std::string& path, const char* attribute, const detail::hdf5_handle& space, const void* values) {
    const detail::hdf5_handle owner = open_group(path), type = detail::hdf5_text_type();
    const detail::hdf5_handle made(H5Acreate2(owner.id(), attribute, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!made || H5Awrite(made.id(), type.id(), values) < 0) fail(path);
  }
};

}  // namespace strata
