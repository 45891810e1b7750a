// CUDA devices as nvcc and the CUDA runtime have them. emulated.hpp has the same names for other compilers.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>

/// Marks code that only runs on a device: nvcc needs the word in front of each function that waits at a barrier.
#define STRATA_DEVICE __device__

namespace strata::machine {

/// One thread of a kernel. A kernel is a function object: see launch.
struct lane {
  STRATA_DEVICE int thread() const { return int(threadIdx.x); }
  STRATA_DEVICE long block() const { return long(blockIdx.x); }
  /// Returns when all threads of the block have called it.
  STRATA_DEVICE void barrier() const { __syncthreads(); }
};

namespace detail {
inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw_error({"CUDA: ", what, ": ", cudaGetErrorString(code)});
}

template <class Code>
__global__ void __launch_bounds__(Code::threads) run(const Code code) {
  if constexpr (requires { typename Code::shared; }) {
    __shared__ typename Code::shared memory;
    code(lane{}, memory);
  } else {
    code(lane{});
  }
}
}  // namespace detail

/// 0 also where there is no driver.
inline int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// Where device_count() is 0, in the words of CUDA.
inline const char* why_no_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  return code == cudaSuccess ? "this machine has no CUDA device" : cudaGetErrorString(code);
}

/// Work that a device does in order. Copies of a queue are the same queue.
class queue {
  struct stream {
    int device;
    cudaStream_t handle = nullptr;
    explicit stream(int d) : device(d) {
      detail::check(cudaSetDevice(d), "cudaSetDevice");
      detail::check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream() { cudaStreamDestroy(handle); }
  };
  std::shared_ptr<stream> stream_;

 public:
  queue() = default;
  explicit queue(int device) : stream_(std::make_shared<stream>(device)) {}
  int device() const { return stream_->device; }
  cudaStream_t handle() const {
    detail::check(cudaSetDevice(stream_->device), "cudaSetDevice");
    return stream_->handle;
  }
};

/// Runs `code` on `blocks` blocks of Code::threads threads: code(lane), or code(lane, memory) with Code::shared for each block.
template <class Code>
void launch(const queue& q, long blocks, const Code& code) {
  if (blocks <= 0) return;
  if (blocks > 0x7fffffffL) throw_error({"CUDA: a kernel of ", blocks, " blocks; a smaller batch needs fewer"});
  detail::run<<<unsigned(blocks), unsigned(Code::threads), 0, q.handle()>>>(code);
  detail::check(cudaGetLastError(), "a kernel could not be launched");
}

inline void wait(const queue& q) { detail::check(cudaStreamSynchronize(q.handle()), "the work of a step"); }

/// Work that is enqueued on `later` from now on begins after all that is on `earlier` now.
inline void order(const queue& earlier, const queue& later) {
  cudaEvent_t done = nullptr;
  const cudaStream_t first = earlier.handle();
  detail::check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "cudaEventCreate");
  detail::check(cudaEventRecord(done, first), "cudaEventRecord");
  detail::check(cudaStreamWaitEvent(later.handle(), done, 0), "cudaStreamWaitEvent");
  detail::check(cudaEventDestroy(done), "cudaEventDestroy");
}

/// Zeroed. Throws strata::error, which names the device, what was asked for and what is free.
inline void* allocate(int device, std::size_t bytes) {
  detail::check(cudaSetDevice(device), "cudaSetDevice");
  void* memory = nullptr;
  if (const cudaError_t code = cudaMalloc(&memory, bytes); code != cudaSuccess) {
    (void)cudaGetLastError();  // the next call would report it again
    if (code != cudaErrorMemoryAllocation) detail::check(code, "cudaMalloc");
    std::size_t free = 0, total = 0;
    (void)cudaMemGetInfo(&free, &total);
    throw_error({"gpu(", device, "): out of memory: ", bytes, " bytes are needed, ", free, " of ", total, " are free"});
  }
  detail::check(cudaMemset(memory, 0, bytes), "cudaMemset");
  detail::check(cudaStreamSynchronize(nullptr), "cudaMemset");  // queues do not wait for the stream on which this is done
  return memory;
}
inline void release(int device, void* memory) noexcept {
  if (memory && cudaSetDevice(device) == cudaSuccess) cudaFree(memory);
}

inline void copy_to_device(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q.handle()), "a copy to the device");
}
inline void copy_to_host(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q.handle()), "a copy to the host");
}
/// Between addresses of any devices.
inline void copy_between(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q.handle()), "a copy between devices");
}

}  // namespace strata::machine
