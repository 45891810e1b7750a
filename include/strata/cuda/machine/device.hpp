// A CUDA device: memory and queues, with the interface of concepts/device.hpp.
#pragma once
#include <cstddef>
#include <span>
#include <strata/base/environment.hpp>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/device.hpp>
#include <strata/cuda/machine/machine.hpp>
#include <string>
#include <utility>

namespace strata {

namespace core {
/// One GPU, by its index in this machine.
class cuda_device {
  int index_ = 0;

 public:
  static constexpr bool is_host = false;
  using queue = machine::queue;

  /// Zeroed memory of a device.
  template <class T>
  class buffer {
    int device_ = 0;
    T* data_ = nullptr;
    std::size_t size_ = 0;

   public:
    buffer() = default;
    buffer(int device, std::size_t size)
        : device_(device),
          data_(size > 0 ? static_cast<T*>(machine::allocate(device, size * sizeof(T))) : nullptr),
          size_(size) {}
    buffer(buffer&& from) noexcept { swap(from); }
    buffer& operator=(buffer&& from) noexcept {
      buffer old(std::move(from));
      swap(old);
      return *this;
    }
    ~buffer() { machine::release(device_, data_); }
    T* data() const { return data_; }
    std::size_t size() const { return size_; }

   private:
    void swap(buffer& other) noexcept {
      std::swap(device_, other.device_), std::swap(data_, other.data_), std::swap(size_, other.size_);
    }
  };

  cuda_device() = default;
  /// Throws strata_error if this machine has no such device.
  explicit cuda_device(int index) : index_(index) {
    const int count = machine::device_count();
    if (index >= 0 && index < count) return;
    if (count > 0) throw_error({"gpu(", index, "): this machine has ", count, ", from gpu(0) to gpu(", count - 1, ")"});
#if defined(__CUDACC__)
    throw_error({"gpu(", index, "): this machine has no CUDA device"});
#else
    const std::string emulated = detail::environment_variable("STRATA_EMULATED_GPUS");
    throw_error({"gpu(", index,
                 "): this file was not compiled by nvcc, so only emulated devices exist, as many as the environment variable "
                 "STRATA_EMULATED_GPUS says; it is ",
                 emulated.empty() ? "not set" : emulated});
#endif
  }
  int index() const { return index_; }

  queue make_queue() const { return queue(index_); }
  template <class T>
  buffer<T> allocate(std::size_t size) const {
    return {index_, size};
  }
  template <class T>
  void copy_to_device(const queue& q, std::span<const T> values, T* to) const {
    if (!values.empty()) machine::copy_to_device(q, to, values.data(), values.size_bytes());
  }
  template <class T>
  void copy_to_host(const queue& q, const T* from, std::span<T> values) const {
    if (!values.empty()) machine::copy_to_host(q, values.data(), from, values.size_bytes());
  }
  void wait(const queue& q) const { machine::wait(q); }
};
static_assert(computing_device<cuda_device>);

/// The kernels of NVIDIA's GPUs.
struct cuda {
  static constexpr auto name = "cuda";
  using device = cuda_device;
};
}  // namespace core

}  // namespace strata
