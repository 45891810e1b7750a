// NCCL for nvcc. The library is loaded when it is used, so programs link without it; its header is optional.
// https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html
#pragma once
#include <chrono>
#include <strata/concepts/communicator.hpp>
#include <strata/cuda/machine/hardware.cuh>
#include <thread>
#include <type_traits>
#include <utility>
#if __has_include(<nccl.h>)
#include <dlfcn.h>
#include <nccl.h>
#define STRATA_HAS_NCCL 1
#else
#define STRATA_HAS_NCCL 0
#endif

namespace strata::machine {

/// Names the communicators that are made together, in all processes.
struct nccl_id {
  char bytes[128];
};

#if STRATA_HAS_NCCL
namespace detail {

/// The functions of libnccl.so.2.
struct nccl_library {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommFinalize) finalize;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommGetAsyncError) get_async_error;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;

  /// Throws strata_error if this machine has no NCCL.
  static const nccl_library& the() {
    static const nccl_library loaded;
    return loaded;
  }

 private:
  nccl_library() {
    void* const file = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!file) throw_error({"fastest{} needs NCCL: ", ::dlerror()});
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(file, name));
      if (!function) throw_error({"fastest{} needs a newer NCCL: libnccl.so.2 has no ", name});
    };
    find(get_unique_id, "ncclGetUniqueId");
    find(init_rank, "ncclCommInitRankConfig");
    find(abort, "ncclCommAbort");
    find(finalize, "ncclCommFinalize");
    find(destroy, "ncclCommDestroy");
    find(get_async_error, "ncclCommGetAsyncError");
    find(all_reduce, "ncclAllReduce");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(error_string, "ncclGetErrorString");
    find(last_error, "ncclGetLastError");
  }
};

/// Accepts a call that continues in the background, which is no failure.
inline void check_nccl(ncclResult_t code, const char* during, ncclComm_t of = nullptr) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  const nccl_library& all = nccl_library::the();
  throw_exception(
      communication_error(strata::detail::text_of({"NCCL, ", during, ": ", all.error_string(code), ": ", all.last_error(of)})));
}

template <class T>
inline constexpr ncclDataType_t nccl_type = std::is_same_v<T, double> ? ncclDouble : ncclFloat;

}  // namespace detail

/// Throws strata_error if there is no NCCL.
inline void need_nccl() { detail::nccl_library::the(); }
inline nccl_id make_nccl_id() {
  ncclUniqueId made;
  static_assert(sizeof made == sizeof(nccl_id));
  detail::check_nccl(detail::nccl_library::the().get_unique_id(&made), "a new group");
  nccl_id id;
  for (std::size_t i = 0; i < sizeof id; ++i) id.bytes[i] = made.internal[i];
  return id;
}

/// The rank of one device among `ranks`. No call waits for the others: is_ready() returns true when the calls so far have been
/// enqueued.
class nccl_communicator {
  ncclComm_t handle_ = nullptr;
  bool leaves_ = false;

 public:
  nccl_communicator(int device, const nccl_id& group, int rank, int ranks) {
    const detail::nccl_library& all = detail::nccl_library::the();
    ncclUniqueId id;
    for (std::size_t i = 0; i < sizeof id; ++i) id.internal[i] = group.bytes[i];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // or a failure of another process could not be noticed
    detail::check(device, cudaSetDevice(device), "cudaSetDevice");
    detail::check_nccl(all.init_rank(&handle_, ranks, id, rank, &config), "joining a group");
  }
  nccl_communicator(nccl_communicator&& from) noexcept
      : handle_(std::exchange(from.handle_, nullptr)), leaves_(from.leaves_) {}
  nccl_communicator& operator=(nccl_communicator&& from) noexcept {
    std::swap(handle_, from.handle_), std::swap(leaves_, from.leaves_);
    return *this;
  }
  /// Bounds the wait for the other ranks.
  ~nccl_communicator() {
    begin_to_leave();
    const detail::nccl_library& all = detail::nccl_library::the();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    ncclResult_t now = ncclInProgress;
    while (handle_ && now == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
      if (all.get_async_error(handle_, &now) != ncclSuccess) break;
      std::this_thread::yield();
    }
    if (handle_ && now == ncclSuccess)
      all.destroy(handle_);
    else
      abort();
  }

  /// Throws communication_error if a call has failed.
  bool is_ready() const {
    ncclResult_t now = ncclSuccess;
    detail::check_nccl(detail::nccl_library::the().get_async_error(handle_, &now), "its state", handle_);
    detail::check_nccl(now, "a sum of gradients", handle_);
    return now != ncclInProgress;
  }
  /// Ends all enqueued work, and frees its memory.
  void abort() noexcept {
    if (handle_) detail::nccl_library::the().abort(std::exchange(handle_, nullptr));
  }
  /// All ranks call it before one of them is destroyed: others may still need what they have sent.
  void begin_to_leave() noexcept {
    if (handle_ && !leaves_) leaves_ = true, detail::nccl_library::the().finalize(handle_);
  }
  /// Enqueues the sum over all ranks, which replaces the values of each.
  template <class T>
  void add_up(const queue& q, T* values, std::size_t count) {
    const cudaStream_t stream = q.handle();
    detail::check_nccl(
        detail::nccl_library::the().all_reduce(values, values, count, detail::nccl_type<T>, ncclSum, handle_, stream),
        "a sum of gradients", handle_);
  }
};

/// Calls of one thread for several devices.
template <class F>
void nccl_together(F&& calls) {
  const detail::nccl_library& all = detail::nccl_library::the();
  detail::check_nccl(all.group_start(), "calls for several devices");
  try {
    calls();
  } catch (...) {
    (void)all.group_end();
    throw;
  }
  detail::check_nccl(all.group_end(), "calls for several devices");
}

#else  // the same names, so that programs compile

[[noreturn]] inline void need_nccl() {
  throw_error("fastest{} needs NCCL, but nccl.h was not found when this program was compiled");
}
[[noreturn]] inline nccl_id make_nccl_id() { need_nccl(); }
struct nccl_communicator {
  nccl_communicator(int, const nccl_id&, int, int) { need_nccl(); }
  static bool is_ready() { return true; }
  static void begin_to_leave() noexcept {}
  static void abort() noexcept {}
  template <class T>
  void add_up(const queue&, T*, std::size_t) {}
};
template <class F>
void nccl_together(F&& calls) {
  calls();
}
#endif

}  // namespace strata::machine
