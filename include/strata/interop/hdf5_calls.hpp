// Common parts of calls of libhdf5: a lock, identifiers that are closed, types, and files in memory.
// needs: hdf5
#pragma once
#include <hdf5.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <strata/base/text.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::detail {

/// Debian's HDF5 is not thread-safe, and prints errors by default: takes a lock and turns printing off.
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

/// An identifier of HDF5, with the function that closes it.
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

/// The type of texts of any length in UTF-8, as h5py writes them.
inline hdf5_handle hdf5_text_type() {
  hdf5_handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), H5T_VARIABLE);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return type;
}

/// Access properties of a file in memory.
inline hdf5_handle hdf5_memory_access() {
  hdf5_handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.id(), std::size_t{1} << 16, false);
  return access;
}

/// A unique name: HDF5 treats files in memory with equal names as the same file, and no file on disk may have the name.
inline std::string hdf5_memory_name() {
  static std::atomic<long> number = 0;
  return text_of({"/dev/null/strata-", number++});
}

}  // namespace strata::detail
