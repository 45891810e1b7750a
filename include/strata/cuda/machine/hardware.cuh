// CUDA devices as nvcc and the CUDA runtime have them. emulated.hpp has the same names for other compilers.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/errors.hpp>

/// Marks code that only runs on a device: nvcc needs the word in front of each function that waits at a barrier.
#define STRATA_DEVICE __device__

namespace strata::machine {

/// One thread of a kernel. A kernel is a function object: see launch.
class lane {
  long first_block_ = 0;

 public:
  STRATA_DEVICE int thread() const { return int(threadIdx.x); }
  STRATA_DEVICE long block() const { return long(blockIdx.x) - first_block_; }
  /// The same thread of a kernel whose first block is that one.
  STRATA_DEVICE lane from_block(long first) const {
    lane other = *this;
    other.first_block_ += first;
    return other;
  }
  /// Returns when all threads of the block have called it.
  STRATA_DEVICE void barrier() const { __syncthreads(); }
};

namespace detail {
/// An error that stays is that of a lost device; others concern one call.
[[noreturn, gnu::cold]] inline void fail(int device, cudaError_t code, const char* during) {
  (void)cudaGetLastError();  // or the next call would report it again
  (void)cudaSetDevice(device);
  const cudaError_t now = cudaDeviceSynchronize();
  const bool is_captured = now >= cudaErrorStreamCaptureUnsupported && now <= cudaErrorStreamCaptureWrongThread;
  if (now != cudaSuccess && !is_captured) throw_exception(device_lost(device, during, cudaGetErrorString(code)));
  throw_error({"gpu(", device, "): ", cudaGetErrorString(code), " in ", during});
}
inline void check(int device, cudaError_t code, const char* during) {
  if (code != cudaSuccess) [[unlikely]]
    fail(device, code, during);
}

/// 1: at least one block at a time, so that no kernel is held to so few registers that it spills.
template <class Code>
__global__ void __launch_bounds__(Code::threads, 1) run(const Code code) {
  if constexpr (requires { typename Code::shared; }) {
    __shared__ typename Code::shared memory;
    code(lane(), memory);
  } else {
    code(lane());
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
    cudaEvent_t reached = nullptr;  // see order; recorded again in each step
    explicit stream(int d) : device(d) {
      detail::check(d, cudaSetDevice(d), "cudaSetDevice");
      detail::check(d, cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream() {
      if (reached) cudaEventDestroy(reached);
      cudaStreamDestroy(handle);
    }
  };
  std::shared_ptr<stream> stream_;

 public:
  queue() = default;
  explicit queue(int device) : stream_(std::make_shared<stream>(device)) {}
  int device() const { return stream_->device; }
  cudaStream_t handle() const {
    detail::check(stream_->device, cudaSetDevice(stream_->device), "cudaSetDevice");
    return stream_->handle;
  }
  /// Records that all work up to now is done. A wait for it holds until then, also if it is recorded again in the meantime.
  cudaEvent_t record() const {
    const cudaStream_t on = handle();
    if (!stream_->reached)
      detail::check(device(), cudaEventCreateWithFlags(&stream_->reached, cudaEventDisableTiming), "cudaEventCreate");
    detail::check(device(), cudaEventRecord(stream_->reached, on), "cudaEventRecord");
    return stream_->reached;
  }
};

/// Runs `code` on `blocks` blocks of Code::threads threads: code(lane), or code(lane, memory) with Code::shared for each block.
template <class Code>
void launch(const queue& q, long blocks, const Code& code) {
  if (blocks <= 0) return;
  if (blocks > 0x7fffffffL) throw_error({"CUDA: a kernel of ", blocks, " blocks; a smaller batch needs fewer"});
  detail::run<<<unsigned(blocks), unsigned(Code::threads), 0, q.handle()>>>(code);
  detail::check(q.device(), cudaGetLastError(), "a kernel");
}

inline void wait(const queue& q) { detail::check(q.device(), cudaStreamSynchronize(q.handle()), "the work of a step"); }

/// Whether all work is done.
inline bool is_done(const queue& q) {
  const cudaError_t code = cudaStreamQuery(q.handle());
  if (code == cudaErrorNotReady) {
    (void)cudaGetLastError();  // or the next launch would report it
    return false;
  }
  detail::check(q.device(), code, "the work of a step");
  return true;
}

/// A place in the work of a queue, for which other queues and the host can wait.
class event {
  std::shared_ptr<CUevent_st> handle_;  // null: it was never recorded, and nothing waits for it
  int device_ = 0;

 public:
  /// After all work that is on the queue now. Always of the same device.
  void record(const queue& q) {
    const cudaStream_t stream = q.handle();
    if (!handle_) {
      cudaEvent_t made = nullptr;
      device_ = q.device();
      detail::check(device_, cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreate");
      handle_ = {made, [](cudaEvent_t e) { cudaEventDestroy(e); }};
    }
    detail::check(device_, cudaEventRecord(handle_.get(), stream), "cudaEventRecord");
  }
  /// Work that is enqueued from now on begins after it.
  void hold(const queue& later) const {
    if (handle_) detail::check(later.device(), cudaStreamWaitEvent(later.handle(), handle_.get(), 0), "cudaStreamWaitEvent");
  }
  void wait() const {
    if (handle_) detail::check(device_, cudaEventSynchronize(handle_.get()), "the work of a step");
  }
};

/// Work that is enqueued on `later` from now on begins after all that is on `earlier` now.
inline void order(const queue& earlier, const queue& later) {
  const cudaEvent_t reached = earlier.record();
  detail::check(later.device(), cudaStreamWaitEvent(later.handle(), reached, 0), "cudaStreamWaitEvent");
}

/// Work of one queue, and of those that wait for it, that was recorded once and is launched as one.
class graph {
  std::shared_ptr<CUgraphExec_st> handle_;

 public:
  graph() = default;
  explicit graph(cudaGraphExec_t made) : handle_(made, [](cudaGraphExec_t e) { cudaGraphExecDestroy(e); }) {}
  explicit operator bool() const { return handle_ != nullptr; }
  void launch(const queue& q) const { detail::check(q.device(), cudaGraphLaunch(handle_.get(), q.handle()), "a graph"); }
};

/// What f() enqueues on the queue becomes a graph and is not done now. So does what it enqueues on other queues, of any device,
/// that wait for this one (order); this one waits for them before f() returns. Meanwhile nothing is allocated, and the host does
/// not wait. Addresses and all other arguments of kernels are the same in each launch.
template <class F>
graph capture(const queue& q, F&& f) {
  /// If f throws, the capture ends, too.
  struct recording {
    cudaStream_t on;
    cudaGraph_t made = nullptr;
    bool ended = false;
    cudaError_t end() {
      ended = true;
      return cudaStreamEndCapture(on, &made);
    }
    ~recording() {
      if (!ended) (void)end(), (void)cudaGetLastError();  // or the next launch would report it
      if (made) cudaGraphDestroy(made);
    }
  } now{q.handle()};
  detail::check(q.device(), cudaStreamBeginCapture(now.on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  f();
  detail::check(q.device(), now.end(), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  detail::check(q.device(), cudaGraphInstantiate(&made, now.made, 0), "cudaGraphInstantiate");
  return graph(made);
}

/// How long a device takes for what work() puts on a queue. Waits for it.
template <class Work>
float milliseconds_of(const queue& q, Work&& work) {
  struct event {
    cudaEvent_t handle = nullptr;
    explicit event(int device) { detail::check(device, cudaEventCreate(&handle), "cudaEventCreate"); }
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    ~event() { cudaEventDestroy(handle); }
  };
  const cudaStream_t stream = q.handle();
  const event begin(q.device()), end(q.device());
  detail::check(q.device(), cudaEventRecord(begin.handle, stream), "cudaEventRecord");
  work();
  detail::check(q.device(), cudaEventRecord(end.handle, stream), "cudaEventRecord");
  detail::check(q.device(), cudaEventSynchronize(end.handle), "a measurement");
  float time = 0;
  detail::check(q.device(), cudaEventElapsedTime(&time, begin.handle, end.handle), "cudaEventElapsedTime");
  return time;
}

/// Bytes; 0 if the device does not say.
inline std::size_t free_memory(int device) {
  std::size_t free = 0, total = 0;
  detail::check(device, cudaSetDevice(device), "cudaSetDevice");
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) return free;
  (void)cudaGetLastError();  // the next call would report it again
  return 0;
}

/// Zeroed. Throws out_of_device_memory or device_lost.
inline void* allocate(int device, std::size_t bytes) {
  detail::check(device, cudaSetDevice(device), "cudaSetDevice");
  void* memory = nullptr;
  if (const cudaError_t code = cudaMalloc(&memory, bytes); code != cudaSuccess) {
    if (code != cudaErrorMemoryAllocation) detail::check(device, code, "an allocation of memory");
    (void)cudaGetLastError();  // the next call would report it again
    std::size_t free = 0, total = 0;
    (void)cudaMemGetInfo(&free, &total);
    throw_exception(out_of_device_memory(device, bytes, free, total));
  }
  detail::check(device, cudaMemset(memory, 0, bytes), "cudaMemset");
  detail::check(device, cudaStreamSynchronize(nullptr), "cudaMemset");  // queues do not wait for the stream on which this is done
  return memory;
}
inline void release(int device, void* memory) noexcept {
  if (memory && cudaSetDevice(device) == cudaSuccess) cudaFree(memory);
}

/// Memory of the host that devices read by themselves, while the program goes on.
class pinned_memory {
  std::shared_ptr<std::byte> data_;
  std::size_t size_ = 0;

 public:
  pinned_memory() = default;
  explicit pinned_memory(std::size_t size) : size_(size) {
    void* made = nullptr;
    if (const cudaError_t code = cudaHostAlloc(&made, size, cudaHostAllocPortable); code != cudaSuccess) {
      (void)cudaGetLastError();  // the next call would report it again
      throw_error({"CUDA: ", size, " bytes of pinned memory of the host: ", cudaGetErrorString(code)});
    }
    data_ = {static_cast<std::byte*>(made), [](std::byte* memory) { cudaFreeHost(memory); }};
  }
  std::byte* data() { return data_.get(); }
  std::size_t size() const { return size_; }
};
/// The values are read when the copy is done: until then they stay as they are.
inline void copy_pinned_to_device(const queue& q, void* to, const std::byte* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q.handle()), "a copy to the device");
}
inline void copy_to_device(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q.handle()), "a copy to the device");
}
inline void copy_to_host(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q.handle()), "a copy to the host");
}
/// Copies between the memory of two devices need not go through that of the host, where the hardware can do so.
inline void enable_peer_access(int from, int to) {
  int can = 0;
  if (from == to || cudaSetDevice(from) != cudaSuccess || cudaDeviceCanAccessPeer(&can, from, to) != cudaSuccess || !can) return;
  (void)cudaDeviceEnablePeerAccess(to, 0);
  (void)cudaGetLastError();  // it may have been enabled before
}
/// Between addresses of any devices.
inline void copy_between(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q.handle()), "a copy between devices");
}

}  // namespace strata::machine
