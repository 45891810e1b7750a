// The parts of HDF5 files that weights need: groups, numeric arrays, and texts as attributes.
// needs: hdf5
#pragma once
#include <hdf5.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/interop/hdf5_calls.hpp>
#include <strata/interop/hdf5_image.hpp>
#include <strata/io/open_file.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

/// An HDF5 file for reading. All of it is read into memory at once, so that neither locks nor other writers matter. Soft links,
/// external links, data in other files and filters other than those of h5py are refused, and what unpacks to far more than the
/// file has. All members throw strata_error that names the file and the path within it, and may be called by several threads.
/// libhdf5 itself may crash on damaged bytes: examples/check_keras_file.cpp reads a file of strangers in a process of its own
/// first.
class hdf5_file {
 public:
  /// The description of an array, available before it is read.
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

  explicit hdf5_file(const std::filesystem::path& path) : hdf5_file(path.string(), bytes_of(path)) {}
  /// `name` is the name of the file in errors.
  hdf5_file(std::string name, const std::vector<std::byte>& bytes) : name_(std::move(name)), bytes_(bytes.size()) {
    const detail::hdf5_call call;
    static constexpr unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    if (bytes.size() < sizeof signature ||
        !std::ranges::equal(std::span(bytes).first(sizeof signature), std::as_bytes(std::span(signature))))
      throw_error({name_, ": not an HDF5 file"});
    const detail::hdf5_handle access = detail::hdf5_memory_access();
    if (H5Pset_file_image(access.id(), const_cast<std::byte*>(bytes.data()), bytes.size()) < 0)
      throw_error({name_, ": out of memory"});
    file_ = {H5Fopen(detail::hdf5_memory_name().c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose};
    if (!file_) throw_error({name_, ": damaged, or an HDF5 file of a newer version"});
  }

  hdf5_file(const hdf5_file&) = delete;
  hdf5_file& operator=(const hdf5_file&) = delete;
  ~hdf5_file() {
    const detail::hdf5_call call;
    file_ = {};
  }

  const std::string& name() const { return name_; }

  /// Whether there is a group or an array at a path such as layers/dense/vars.
  bool has(std::string_view path) const {
    const detail::hdf5_call call;
    return find(path).has_value();
  }
  /// Whether there is an array at that path.
  bool is_array(std::string_view path) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> found = find(path);
    return found && H5Iget_type(found->id()) == H5I_DATASET;
  }
  /// The names in a group, sorted; none if the group does not exist.
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
  /// The array at that path; empty if there is none.
  std::optional<array> find_array(std::string_view path) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> found = find(path);
    if (!found) return {};
    return describe(found->id(), path);
  }
  /// Reads all elements of an array as T: float, double, std::int32_t or std::int64_t. out.size() must be their number.
  template <class T>
  void read(std::string_view path, std::span<T> out) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> found = find(path);
    if (!found) fail(path, "missing");
    const array about = describe(found->id(), path);
    if (!about.is_float && !about.is_whole) fail(path, "has no numbers");
    if (about.count() != out.size()) fail(path, detail::text_of({"has ", about.count(), " elements, not ", out.size()}));
    if (H5Dread(found->id(), detail::hdf5_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) < 0) fail(path, "damaged");
  }
  /// Whether a group has an attribute.
  bool has_attribute(std::string_view path, const char* attribute) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> owner = find(path);
    return owner && H5Aexists(owner->id(), attribute) > 0;
  }
  /// The text, or the texts, of an attribute of a group; empty if there is none.
  std::optional<std::vector<std::string>> texts(std::string_view path, const char* attribute) const {
    const detail::hdf5_call call;
    const std::optional<detail::hdf5_handle> owner = find(path);
    if (!owner || H5Aexists(owner->id(), attribute) <= 0) return {};
    const auto damaged = [&] { fail(path, detail::text_of({"its attribute ", attribute, " is damaged, or not text"})); };
    const detail::hdf5_handle opened(H5Aopen(owner->id(), attribute, H5P_DEFAULT), H5Aclose);
    const detail::hdf5_handle space(opened ? H5Aget_space(opened.id()) : -1, H5Sclose);
    const detail::hdf5_handle type(opened ? H5Aget_type(opened.id()) : -1, H5Tclose);
    if (!space || !type) damaged();
    const hssize_t count = H5Sget_simple_extent_npoints(space.id());
    std::vector<std::string> out;
    if (count == 0) return out;  // h5py writes an empty list of texts as an array without elements
    if (count < 0 || count > 1 << 20 || H5Tget_class(type.id()) != H5T_STRING) damaged();
    const bool of_any_length = H5Tis_variable_str(type.id()) > 0;
    const std::uint64_t together =
        of_any_length ? bytes_of_texts(opened.id(), type.id(), std::size_t(count)) : H5Tget_size(type.id()) * std::size_t(count);
    if (together > bytes_)  // the file may refer to a text many times
      fail(path, detail::text_of({"its attribute ", attribute, " has ", together, " bytes of text in a file of ", bytes_}));
    if (of_any_length) {
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
  std::uint64_t bytes_;  // size of the file
  detail::hdf5_handle file_;

  static std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
    std::vector<std::byte> bytes;
    io::read_content(path, bytes);
    return bytes;
  }

  /// Follows a path step by step, so that each link on it is checked.
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

  /// The total length of the texts of an attribute, before any of them is read. A conversion to the same type returns their
  /// descriptors as stored in the file: a length of four bytes and an address.
  static std::uint64_t bytes_of_texts(hid_t attribute, hid_t type, std::size_t count) {
    constexpr auto unchanged = [](hid_t, hid_t, H5T_cdata_t*, std::size_t, std::size_t, std::size_t, void*, void*, hid_t) {
      return herr_t{0};
    };
    const std::size_t size = std::size_t(H5Aget_storage_size(attribute)) / count;
    std::uint32_t length = 0;
    if (size < sizeof length) return 0;
    const detail::hdf5_handle as_bytes(H5Tcreate(H5T_OPAQUE, size), H5Tclose);
    std::vector<unsigned char> descriptors(size * count);
    H5Tregister(H5T_PERS_SOFT, "descriptors", type, as_bytes.id(), unchanged);
    const herr_t read = H5Aread(attribute, as_bytes.id(), descriptors.data());
    H5Tunregister(H5T_PERS_SOFT, "descriptors", type, as_bytes.id(), unchanged);
    if (read < 0) return std::numeric_limits<std::uint64_t>::max();
    std::uint64_t together = 0;
    for (std::size_t at = 0; at < descriptors.size(); at += size) {
      for (std::size_t k = sizeof length; k-- > 0;) length = length << 8 | descriptors[at + k];
      together += length;
    }
    return together;
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
    if (out.size > 16 && (out.is_float || out.is_whole))
      fail(path, detail::text_of({"its numbers have ", out.size, " bytes each"}));

    if (H5Pget_external_count(creation.id()) > 0) fail(path, "its numbers are in another file, which is not read");
    const H5D_layout_t layout = H5Pget_layout(creation.id());
    if (layout == H5D_VIRTUAL) fail(path, "its numbers are in another file, which is not read");
    for (int k = 0, filters = H5Pget_nfilters(creation.id()); k < filters; ++k) {
      unsigned flags = 0, settings = 0;
      std::size_t count = 0;
      const H5Z_filter_t filter = H5Pget_filter2(creation.id(), unsigned(k), &flags, &count, nullptr, 0, nullptr, &settings);
      if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
        fail(path, detail::text_of({"it is compressed by filter ", int(filter), ", which is not supported"}));
    }
    if (layout == H5D_CHUNKED) {  // a chunk is unpacked as a whole, so a large one of a small array is an attack
      std::vector<hsize_t> chunk(std::size_t(rank) + 1);
      std::uint64_t largest = 1;
      if (H5Pget_chunk(creation.id(), rank, chunk.data()) != rank) fail(path, "damaged");
      bool too_large = false;
      for (int k = 0; k < rank; ++k) too_large |= __builtin_mul_overflow(largest, chunk[std::size_t(k)], &largest);
      if (too_large || largest / 2 > std::max<std::uint64_t>(1u << 19, elements))
        fail(path, "its chunks are larger than the array");
      // deflate unpacks at most 1032 bytes from one
      if (H5Dget_storage_size(id) > 2 * std::max(largest, elements) * out.size + 4096)
        fail(path, "its chunks are larger packed than unpacked");
    }
    return out;
  }
};

}  // namespace strata
