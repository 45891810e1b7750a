// An HDF5 file that is composed in memory.
// needs: hdf5
#pragma once
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/error.hpp>
#include <strata/interop/hdf5_calls.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::core {

/// An HDF5 file that is composed in memory. Groups of a path are created on first use. Throws strata_error that names the
/// path.
class hdf5_image {
 public:
  /// `name` is the name of the file in errors.
  explicit hdf5_image(std::string name) : name_(std::move(name)) {
    const detail::hdf5_call call;
    const detail::hdf5_handle access = detail::hdf5_memory_access();
    file_ = {H5Fcreate(detail::hdf5_memory_name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose};
    links_ = {H5Pcreate(H5P_LINK_CREATE), H5Pclose};
    if (!file_ || !links_ || H5Pset_create_intermediate_group(links_.id(), 1) < 0) fail("/");
  }
  hdf5_image(const hdf5_image&) = delete;
  hdf5_image& operator=(const hdf5_image&) = delete;
  ~hdf5_image() {
    const detail::hdf5_call call;
    links_ = {}, file_ = {};
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
  /// Adds one text as an attribute of a group.
  void text(const std::string& path, const char* attribute, const std::string& value) {
    const detail::hdf5_call call;
    const detail::hdf5_handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const char* const at = value.c_str();
    write_attribute(path, attribute, space, &at);
  }
  /// Adds several texts. Many long ones do not fit into an attribute, as in Keras' .h5 files: this is an error.
  void texts(const std::string& path, const char* attribute, const std::vector<std::string>& values) {
    const detail::hdf5_call call;
    const hsize_t count = values.size();
    const detail::hdf5_handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    std::vector<const char*> at;
    for (const std::string& value : values) at.push_back(value.c_str());
    at.push_back(nullptr);  // HDF5 refuses an empty write from a null pointer
    write_attribute(path, attribute, space, at.data());
  }
  /// The contents of the file so far.
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

}  // namespace strata::core
