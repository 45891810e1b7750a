// How a backend implements an operation: a specialisation of kernel<Backend, Operation or fused<Operations...>, Precision, input
// shapes...>.
#pragma once
#include <cstdint>
#include <memory>
#include <strata/base/random.hpp>
#include <strata/base/tensor.hpp>
#include <strata/concepts/device.hpp>
#include <strata/concepts/operation.hpp>
#include <strata/kernel/gradient_sink.hpp>
#include <type_traits>

namespace strata {

namespace core {
/// Operations that one kernel computes. There is no table of fusions: the plan takes the longest chain for which the backend
/// specialises kernel. The exception is may_fuse (program/plan.hpp): a chain must not separate a loss from the activation with
/// which it has a joint kernel.
template <class... Operations>
struct fused {};

/// Members of a specialisation (all static; `operands` lists the memory that they may read and write):
///   `forward(const operands<T>&)`, `backward(const operands<T>&)`
///   `forward_backward(const operands<T>&)`  forward, then backward, of a group with a loss, optional
///   `backward_into(const operands<T>&, const gradient_sink<T>&)`  backward that stores no weight gradients, optional
///   `infer(const operands<T>&)`           if inference differs from forward
///   `derive(const T* const* w, T* derived)`  rebuilds other layouts of the weights; runs after each update
///   `prepare(const operands<T>&, bool trains)`  makes `operands::prepared` for all calls with so many samples and leaves, before
///                                         the first of them and never within a step. trains: backward follows. Optional, for
///                                         devices with a queue
///   `collect`, `collect_backward`, `update_state(const operands<T>&, T* const* w)`  of whole-batch operations
///   `with_narrow<Input, Output>`          a type: the same kernel for a narrow input or output, where its input_end or
///                                         output_end says that there is one. A kernel that derives from it needs its own
/// and `static constexpr kernel_traits traits`.
///
/// Where the queue of the backend's device is not empty, each function takes it as its first argument. Losses and `collect` add
/// to the sums of a leaf; where a call has all samples of its leaves, they may store them. The type depends on operation and
/// input shapes only, so that equal layers share code.
template <class Backend, class Operation, class Precision, shape... In>
struct kernel;

/// How a kernel treats one of its ends, if a precision rounds elements, for example to bfloat16. The plan stores an array, and
/// its gradient, as a narrow array if both ends support it and nothing is lost: one of them rounds the values, and one of them
/// the gradients. Two elements of a narrow array take up the memory of one.
struct narrow_end {
  bool is_possible = false;
  bool rounds_values = false, rounds_gradients = false;  // before storing, or right after reading
};

/// What a kernel needs besides its functions. A kernel lists what differs from the defaults:
/// `static constexpr kernel_traits traits{.saved = 4, .reads_input = false};`
struct kernel_traits {
  /// Elements per sample that forward keeps for backward.
  int saved = 0;
  /// Elements of temporary memory of a call: scratch + count * scratch_per_sample.
  int scratch = 0, scratch_per_sample = 0;
  /// Doubles of whole-batch statistics in each direction: collect adds to [0, n), collect_backward to [n, 2 n).
  int statistics = 0;
  /// Elements of derived weight layouts.
  int derived = 0;
  /// Elements per sample of the output that the kernel stores, if these are a part of it only; 0: all.
  int part_of_output = 0;
  /// Whether backward reads the input or the output. The plan keeps the memory of these until then.
  bool reads_input = true, reads_output = false;
  /// The ends at the only input and at the output.
  narrow_end input_end{}, output_end{};
  /// For a chain with a whole-batch operation inside, which can be fused in inference only: the kernel has only `infer`.
  bool only_infers = false;
};
}  // namespace core

namespace detail {
/// A trait beside `traits`, where nothing reads it.
template <class K>
concept has_stray_kernel_trait =
    requires { K::saved; } || requires { K::scratch; } || requires { K::scratch_per_sample; } || requires { K::statistics; } ||
    requires { K::derived; } || requires { K::part_of_output; } || requires { K::reads_input; } ||
    requires { K::reads_output; } || requires { K::input_end; } || requires { K::output_end; } || requires { K::only_infers; };
template <class K>
constexpr kernel_traits find_traits_of_kernel() {
  constexpr bool has_stray = has_stray_kernel_trait<K>;  // named, so that the line of the error begins with the text
  static_assert(!has_stray, "traits of a kernel are members of `static constexpr kernel_traits traits{...}`");
  if constexpr (requires { K::traits; })
    return K::traits;
  else
    return {};
}
}  // namespace detail

namespace core {
/// Those of a kernel, or the defaults.
template <class K>
inline constexpr kernel_traits traits_of_kernel = detail::find_traits_of_kernel<K>();

/// The leaves of a call, for devices that compute several at once: leaf l has the samples [l * capacity,
/// (l + 1) * capacity) that exist. Its weight gradients lie `gradient_stride` elements after those of leaf l - 1, and the doubles
/// that it adds to `sums_stride` after.
struct leaves_of_call {
  int count = 1, capacity = 0;
  long gradient_stride = 0, sums_stride = 0;
};

template <class T>
class rank_exchange;

/// The memory of one call: `count` samples of one micro-batch, row after row. A null pointer means that a result is not needed.
template <class T>
struct operands {
  int count = 0;
  const T* x[max_inputs] = {};
  T* y = nullptr;
  const T* w[max_group_parameters] = {};  // parameters of the operation, or of all fused ones in order
  const T* derived = nullptr;

  const T* dy = nullptr;
  T* dx[max_inputs] = {};
  bool adds_dx[max_inputs] = {};  // false: the kernel stores; true: it adds to the gradients of other kernels
  T* dw[max_group_parameters] = {};
  bool adds_dw = false;  // false: first micro-batch, the kernel stores

  const void* prepared = nullptr;  // result of `prepare`; null if the kernel has none, or if it returned null
  T* saved = nullptr;              // written forward, read backward
  T* scratch = nullptr;
  double* statistics = nullptr;                // while collecting: sums of this leaf, to be added to; afterwards of the batch
  const double* statistics_of_leaf = nullptr;  // afterwards the sums of this leaf
  double total = 0;                            // samples in the whole global batch
  leaves_of_call leaves{};                     // the host computes one leaf, or a part of it, in a call
  rank_exchange<T>* ranks = nullptr;           // the ranks that divide the layer

  philox random{};                    // generator for this (seed, step, operation)
  const philox* random_at = nullptr;  // the same in device memory, for kernels that are launched again in other steps
  std::int64_t first_sample = 0;      // position of sample 0 in the global batch: an index for `random`

  const std::int32_t* labels = nullptr;  // for the loss: one class per sample, or
  const T* targets = nullptr;            // one row of targets per sample
  const T* weights = nullptr;            // weight of the loss and gradient of each sample; null: 1
  double* loss = nullptr;                // the loss adds (sum, count); null: prediction, without labels
};
}  // namespace core

namespace detail {
template <class Queue, class... Arguments>
struct kernel_call {
  using type = void (*)(Queue, Arguments...);
};
template <class Queue, class... Arguments>
  requires std::is_empty_v<Queue>
struct kernel_call<Queue, Arguments...> {
  using type = void (*)(Arguments...);
};
}  // namespace detail

namespace core {
/// The type of a pointer to a member function of a kernel. An empty queue, such as that of the host, is not passed.
template <class Queue, class... Arguments>
using kernel_call = typename detail::kernel_call<Queue, Arguments...>::type;
}  // namespace core

namespace detail {
template <class Queue, class Call, class... Arguments>
void launch([[maybe_unused]] Queue queue, Call call, Arguments&&... arguments) {
  if constexpr (std::is_empty_v<Queue>)
    call(static_cast<Arguments&&>(arguments)...);
  else
    call(queue, static_cast<Arguments&&>(arguments)...);
}
}  // namespace detail

namespace core {
/// A kernel with its type erased. An engine loops over a table of these, so that its code is compiled once and not per layer.
template <class T, class Queue = host_device::queue>
struct kernel_code {
  using call = kernel_call<Queue, const operands<T>&>;
  call forward = nullptr, backward = nullptr, infer = nullptr, forward_backward = nullptr;
  kernel_call<Queue, const operands<T>&, const gradient_sink<T>&> backward_into = nullptr;
  kernel_call<Queue, const T* const*, T*> derive = nullptr;
  call collect = nullptr, collect_backward = nullptr;
  kernel_call<Queue, const operands<T>&, T* const*> update_state = nullptr;
  std::shared_ptr<const void> (*prepare)(Queue, const operands<T>&, bool) = nullptr;
};

/// Whether a kernel has all required functions.
template <class K, class T, class Queue>
inline constexpr bool has_passes = traits_of_kernel<K>.only_infers || requires(kernel_code<T, Queue> c) {
  c.forward = &K::forward;
  c.backward = &K::backward;
};
template <class T, class Queue>
inline constexpr bool has_passes<void, T, Queue> = true;

template <class K, class T, class Queue, bool Trains>
constexpr kernel_code<T, Queue> make_code() {
  kernel_code<T, Queue> c;
  if constexpr (!std::is_void_v<K> && has_passes<K, T, Queue>) {  // otherwise `compiled` has reported it
    if constexpr (!traits_of_kernel<K>.only_infers) c.infer = &K::forward;
    if constexpr (requires { &K::infer; }) c.infer = &K::infer;
    if constexpr (requires { &K::derive; }) c.derive = &K::derive;
    if constexpr (requires { &K::prepare; }) c.prepare = &K::prepare;
    if constexpr (Trains && !traits_of_kernel<K>.only_infers) c.forward = &K::forward, c.backward = &K::backward;
    if constexpr (Trains && requires { &K::forward_backward; }) c.forward_backward = &K::forward_backward;
    if constexpr (Trains && requires { &K::backward_into; }) c.backward_into = &K::backward_into;
    if constexpr (Trains && requires { &K::collect; }) {
      c.collect = &K::collect;
      c.collect_backward = &K::collect_backward;
      c.update_state = &K::update_state;
    }
  }
  return c;
}
/// The table entry of a kernel; without Trains only the functions that predictions need.
template <class K, class T, class Queue = host_device::queue, bool Trains = true>
inline constexpr kernel_code<T, Queue> code_of = make_code<K, T, Queue, Trains>();

template <class Backend, class Operation, class Precision, shape... In>
concept has_kernel = requires { sizeof(kernel<Backend, Operation, Precision, In...>); };

/// The kernel of the backend; otherwise that of its base backend (`using base = ...`); void if neither has one.
template <class Backend, class Operation, class Precision, shape... In>
struct find_kernel {
  using type = void;
};
template <class Backend, class Operation, class Precision, shape... In>
  requires has_kernel<Backend, Operation, Precision, In...>
struct find_kernel<Backend, Operation, Precision, In...> {
  using type = kernel<Backend, Operation, Precision, In...>;
};
template <class Backend, class Operation, class Precision, shape... In>
  requires(!has_kernel<Backend, Operation, Precision, In...>) && requires { typename Backend::base; }
struct find_kernel<Backend, Operation, Precision, In...> : find_kernel<typename Backend::base, Operation, Precision, In...> {};
}  // namespace core

}  // namespace strata
