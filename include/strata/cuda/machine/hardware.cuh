// CUDA devices as nvcc and the CUDA runtime have them. emulated.hpp has the same names for other compilers.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/blocks_of_multiprocessor.hpp>
#include <strata/cuda/machine/errors.hpp>
#include <strata/cuda/machine/shared_bytes.hpp>

/// Marks code that only runs on a device: nvcc needs the word in front of each function that waits at a barrier.
#define STRATA_DEVICE __device__

namespace strata::machine {

/// One thread of a kernel. A kernel is a function object that is called with a lane: see launch.
class lane {
  long first_block_ = 0;

 public:
  /// The index of this thread in its block.
  STRATA_DEVICE int thread() const { return int(threadIdx.x); }
  /// The index of its block in the kernel.
  STRATA_DEVICE long block() const { return long(blockIdx.x) - first_block_; }
  /// The same thread, with blocks counted from block `first`: its block() is less by `first`.
  STRATA_DEVICE lane from_block(long first) const {
    lane other = *this;
    other.first_block_ += first;
    return other;
  }
  /// Returns when all threads of the block have called it. Only kernels with Code::shared may call it.
  STRATA_DEVICE void barrier() const { __syncthreads(); }
};

namespace detail {
/// True if an error means that the process cannot use the device any more: all later calls report it, too. The host checks the
/// code instead of waiting for the device, which could block for ever if its work waits for a process that has ended.
constexpr bool is_loss(cudaError_t code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice: return true;
    default: return false;
  }
}
/// Throws device_lost if the error of a call means that the device is lost, and strata_error if only the call has failed.
/// `during` names in the text what the call was for.
[[noreturn, gnu::cold]] inline void fail(int device, cudaError_t code, const char* during) {
  (void)cudaGetLastError();  // or the next call would report it again
  if (is_loss(code)) throw_exception(device_lost(device, during, cudaGetErrorString(code)));
  throw_error({"gpu(", device, "): ", cudaGetErrorString(code), " in ", during});
}
/// Does nothing if `code` is cudaSuccess, and else calls fail.
inline void check(int device, cudaError_t code, const char* during) {
  if (code != cudaSuccess) [[unlikely]]
    fail(device, code, during);
}

/// The function that runs on the device when a kernel is launched.
template <class Code>
__global__ void __launch_bounds__(Code::threads, least_blocks<Code>()) run(const Code code) {
  if constexpr (dynamic_shared_bytes<Code>() > 0) {
    extern __shared__ __align__(16) unsigned char memory_of_launch[];
    code(lane(), *reinterpret_cast<typename Code::shared*>(memory_of_launch));
  } else if constexpr (requires { typename Code::shared; }) {
    __shared__ typename Code::shared memory;
    code(lane(), memory);
  } else {
    code(lane());
  }
}
}  // namespace detail

/// Returns the number of devices, which is 0 also where there is no driver.
inline int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

namespace detail {
inline int attribute(int device, cudaDeviceAttr which) {
  int value = 0;
  check(device, cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}
}  // namespace detail

/// Returns how many multiprocessors a device has.
inline int multiprocessors(int device) { return detail::attribute(device, cudaDevAttrMultiProcessorCount); }
/// Returns how much shared memory a multiprocessor of a device has, in bytes. Each block takes 1 KiB more of it than it
/// asks for.
inline int shared_bytes_of_multiprocessor(int device) {
  return detail::attribute(device, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
}

/// Says in the words of CUDA why there is no device, where device_count() is 0.
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
    cudaEvent_t reached = nullptr;  // the event that record() records again each time; null before the first call
    std::shared_ptr<void> library_handle;
    explicit stream(int d) : device(d) {
      detail::check(d, cudaSetDevice(d), "cudaSetDevice");
      detail::check(d, cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream() {
      library_handle = nullptr;  // it refers to the stream
      if (reached) cudaEventDestroy(reached);
      cudaStreamDestroy(handle);
    }
  };
  std::shared_ptr<stream> stream_;

 public:
  /// Makes an object without a queue, which may only be copied, assigned and destroyed.
  queue() = default;
  /// Makes a queue of the device with that index. Throws strata_error if there is no such device.
  explicit queue(int device) : stream_(std::make_shared<stream>(device)) {}
  /// The index of its device.
  int device() const { return stream_->device; }
  /// What a library needs to put work on the queue; the library sets it.
  std::shared_ptr<void>& library_handle() const { return stream_->library_handle; }
  /// Returns the stream of CUDA, and makes its device the current one of the calling thread.
  cudaStream_t handle() const {
    detail::check(stream_->device, cudaSetDevice(stream_->device), "cudaSetDevice");
    return stream_->handle;
  }
  /// Records an event of the queue, which passes when all work that is on the queue now is done, and returns it. A queue that
  /// was told to wait for the event waits until then, also if the event is recorded again in the meantime.
  cudaEvent_t record() const {
    const cudaStream_t on = handle();
    if (!stream_->reached)
      detail::check(device(), cudaEventCreateWithFlags(&stream_->reached, cudaEventDisableTiming), "cudaEventCreate");
    detail::check(device(), cudaEventRecord(stream_->reached, on), "cudaEventRecord");
    return stream_->reached;
  }
};

/// Enqueues a kernel of `blocks` blocks of Code::threads threads, or nothing if `blocks` is not positive. Each thread calls
/// code(lane) or, if there is a type Code::shared, code(lane, memory), where `memory` is one Code::shared for each block, which
/// begins with garbage. Throws strata_error if there are more blocks than CUDA allows.
template <class Code>
void launch(const queue& q, long blocks, const Code& code) {
  if (blocks <= 0) return;
  if (blocks > 0x7fffffffL) throw_error({"CUDA: a kernel of ", blocks, " blocks; a smaller batch needs fewer"});
  const cudaStream_t on = q.handle();
  constexpr std::size_t bytes = detail::dynamic_shared_bytes<Code>();
  if constexpr (bytes > 0)
    detail::check(q.device(), cudaFuncSetAttribute(detail::run<Code>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)),
                  "cudaFuncSetAttribute");
  detail::run<<<unsigned(blocks), unsigned(Code::threads), bytes, on>>>(code);
  detail::check(q.device(), cudaGetLastError(), "a kernel");
}

/// Waits until all work of the queue is done. Throws device_lost if the device is lost, and strata_error if the queue is
/// captured.
inline void wait(const queue& q) { detail::check(q.device(), cudaStreamSynchronize(q.handle()), "the work of a step"); }

/// Returns whether all work of the queue is done. Throws device_lost if the device is lost, and strata_error if the queue is
/// captured.
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
  /// Sets the place: after all work that is on the queue now. It replaces the place of an earlier call, whose queue must be of
  /// the same device.
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
  /// Makes work that is enqueued on `later` from now on begin after this place. If the place is part of a capture, `later`
  /// becomes part of it, too. Does nothing if record was never called. Throws strata_error if that capture has ended, or if
  /// `later` is captured and the place is not part of the same capture.
  void hold(const queue& later) const {
    if (handle_) detail::check(later.device(), cudaStreamWaitEvent(later.handle(), handle_.get(), 0), "cudaStreamWaitEvent");
  }
  /// Waits until the work before this place is done. Throws device_lost if the device is lost, and strata_error if the place
  /// is captured or the calling thread captures a queue.
  void wait() const {
    if (handle_) detail::check(device_, cudaEventSynchronize(handle_.get()), "the work of a step");
  }
};

/// Makes work that is enqueued on `later` from now on begin after all work that is on `earlier` now. Throws as event::hold
/// does.
inline void order(const queue& earlier, const queue& later) {
  const cudaEvent_t reached = earlier.record();
  detail::check(later.device(), cudaStreamWaitEvent(later.handle(), reached, 0), "cudaStreamWaitEvent");
}

/// Work of one queue, and of queues that wait for it, that was recorded once (see capture) and is launched as a whole.
class graph {
  std::shared_ptr<CUgraphExec_st> handle_;

 public:
  /// Makes an empty graph, which cannot be launched.
  graph() = default;
  /// Makes the owner of a graph of CUDA.
  explicit graph(cudaGraphExec_t made) : handle_(made, [](cudaGraphExec_t e) { cudaGraphExecDestroy(e); }) {}
  /// Whether it is not empty.
  explicit operator bool() const { return handle_ != nullptr; }
  /// Enqueues its work on `q`. Work that was recorded on other queues is not put on these; later work on `q` begins when all of
  /// the graph is done.
  void launch(const queue& q) const { detail::check(q.device(), cudaGraphLaunch(handle_.get(), q.handle()), "a graph"); }
};

/// Calls f() and returns the work that f() enqueues on `q` as a graph, without doing it. Work on other queues, of any device,
/// is part of the graph if these queues wait for `q` (see order); `q` must wait for them before f() returns. f() must not
/// allocate or release memory, pinned memory included, and the host must not wait or ask whether a queue is done in it.
/// Addresses and all other arguments of kernels are the same in each launch. Throws strata_error if CUDA refuses something of
/// this, device_lost if the device is lost, and what f() throws. The capture ends in any case.
template <class F>
graph capture(const queue& q, F&& f) {
  // The destructor ends the capture if f() throws.
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

/// Returns how many milliseconds a device takes for what work() enqueues on `q`. Waits until it is done.
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

/// Returns the number of free bytes of a device, or 0 if the device does not say how many there are. Throws strata_error if
/// there is no such device.
inline std::size_t free_memory(int device) {
  std::size_t free = 0, total = 0;
  detail::check(device, cudaSetDevice(device), "cudaSetDevice");
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) return free;
  (void)cudaGetLastError();  // the next call would report it again
  return 0;
}

/// Returns the address of `bytes` zeroed bytes of a device. Throws out_of_device_memory if it has no room for them, device_lost
/// if the device is lost, and strata_error if there is no such device, or if the calling thread captures a queue.
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
/// Frees what `allocate` returned for the same device, after all work on queues of this device. Does nothing for null, or if
/// the device cannot be used. If the calling thread captures a queue, the memory is not freed, and the capture fails.
inline void release(int device, void* memory) noexcept {
  if (memory && cudaSetDevice(device) == cudaSuccess) cudaFree(memory);
}

/// Memory of the host that devices read by themselves, while the program goes on: copy_pinned_to_device copies from it. Copies
/// of an object are the same memory.
class pinned_memory {
  std::shared_ptr<std::byte> data_;
  std::size_t size_ = 0;

 public:
  /// Makes an object without memory.
  pinned_memory() = default;
  /// Allocates `size` bytes, which may have any values. Throws strata_error if CUDA refuses, as it does if the calling thread
  /// captures a queue.
  explicit pinned_memory(std::size_t size) : size_(size) {
    void* made = nullptr;
    if (const cudaError_t code = cudaHostAlloc(&made, size, cudaHostAllocPortable); code != cudaSuccess) {
      (void)cudaGetLastError();  // the next call would report it again
      throw_error({"CUDA: ", size, " bytes of pinned memory of the host: ", cudaGetErrorString(code)});
    }
    data_ = {static_cast<std::byte*>(made), [](std::byte* memory) { cudaFreeHost(memory); }};
  }
  /// The address of the first byte.
  std::byte* data() { return data_.get(); }
  /// The number of bytes.
  std::size_t size() const { return size_; }
};
/// Enqueues a copy of `bytes` bytes from pinned memory of the host to the device of the queue. The caller must not change them
/// until the copy is done.
inline void copy_pinned_to_device(const queue& q, void* to, const std::byte* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q.handle()), "a copy to the device");
}
/// Enqueues a copy of `bytes` bytes from the host to the device of the queue. The bytes are read before this function returns,
/// so the caller may change them at once. The queue must not be captured.
inline void copy_to_device(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q.handle()), "a copy to the device");
  // Bytes that CUDA knows, such as those of a pinned array of the program, are read later: when the copy is done.
  cudaPointerAttributes known{};
  detail::check(q.device(), cudaPointerGetAttributes(&known, from), "cudaPointerGetAttributes");
  if (known.type != cudaMemoryTypeUnregistered) wait(q);
}
/// Enqueues a copy of `bytes` bytes from the device of the queue to the host. They are there when the host has waited for the
/// copy. The queue must not be captured.
inline void copy_to_host(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q.handle()), "a copy to the host");
}
/// Lets device `from` copy to and from the memory of device `to` without the host, if both can. Does nothing if they cannot, or
/// if there is no such device.
inline void enable_peer_access(int from, int to) {
  int can = 0;
  if (from == to || cudaSetDevice(from) != cudaSuccess || cudaDeviceCanAccessPeer(&can, from, to) != cudaSuccess || !can) return;
  (void)cudaDeviceEnablePeerAccess(to, 0);
  (void)cudaGetLastError();  // it may have been enabled before
}
/// Enqueues a copy of `bytes` bytes between addresses of any two devices.
inline void copy_between(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::check(q.device(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q.handle()), "a copy between devices");
}

}  // namespace strata::machine
