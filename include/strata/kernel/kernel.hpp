// The seam between description and speed: kernel<Backend, Operation or fused<Operations...>, Precision, input shapes...>.
#pragma once
#include <cstdint>
#include <strata/base/random.hpp>
#include <strata/base/tensor.hpp>
#include <strata/concepts/operation.hpp>
#include <strata/kernel/gradient_sink.hpp>
#include <type_traits>

namespace strata {

/// Operations that a backend computes in one go. A specialisation of kernel for it IS the fusion rule: the longest chain
/// that has one wins; there is no other table.
template <class... Operations>
struct fused {};

/// Members of a specialisation (all static; `operands` says what they may touch):
///   `forward(const operands<T>&)`, `backward(const operands<T>&)`
///   `backward_into(const operands<T>&, const gradient_sink<T>&)`  backward that stores no weight gradients, optional
///   `infer(const operands<T>&)`           where inference differs from forward
///   `derive(const T* const* w, T* derived)`  rebuilds other layouts of the weights; runs after each update
///   for whole-batch operations: `collect`, `collect_backward`, `update_state(const operands<T>&, T* const* w)`
/// and the constants of kernel_defaults. Keyed by operation and input shapes only, so that equal layers share code.
template <class Backend, class Operation, class Precision, shape... In>
struct kernel;

/// Defaults of a kernel's constants.
struct kernel_defaults {
  /// Numbers kept from forward to backward, per sample.
  static constexpr int saved = 0;
  /// Numbers that one call may use as it likes: scratch + count * scratch_per_sample.
  static constexpr int scratch = 0, scratch_per_sample = 0;
  /// Doubles of whole-batch statistics in each direction: collect adds to [0, n), collect_backward to [n, 2 n).
  static constexpr int statistics = 0;
  /// Numbers of derived weight layouts.
  static constexpr int derived = 0;
  /// What backward reads: keeps these buffers alive.
  static constexpr bool reads_input = true, reads_output = false;
  /// A kernel of a chain with a whole-batch operation inside: there is one in inference only, and it has only `infer`.
  static constexpr bool only_infers = false;
};

/// What a kernel may touch in one call: `count` samples of one micro-batch, row after row. Null: nobody wants it.
template <class T>
struct operands {
  int count = 0;
  const T* x[max_inputs] = {};
  T* y = nullptr;
  const T* w[max_group_parameters] = {};  // parameters of the operation, or of all fused ones in order
  const T* derived = nullptr;

  const T* dy = nullptr;
  T* dx[max_inputs] = {};
  bool adds_dx[max_inputs] = {};  // false: the kernel stores; true: it adds to what others have written
  T* dw[max_group_parameters] = {};
  bool adds_dw = false;           // false: first micro-batch, the kernel stores

  T* saved = nullptr;             // written forward, read backward
  T* scratch = nullptr;
  double* statistics = nullptr;   // of this leaf while collecting (add to them), of the whole batch afterwards
  double total = 0;               // samples in the whole global batch

  philox random{};                // of this (seed, step, operation); count on with first_sample
  std::int64_t first_sample = 0;  // position of sample 0 in the global batch

  const std::int32_t* labels = nullptr;  // the loss: one class per sample, or
  const T* targets = nullptr;            // numbers, row after row
  double* loss = nullptr;                // adds (sum, count); null: only predictions are wanted, there are no labels
};

/// A kernel with its type erased: executors are loops over a table of these, compiled once, not once per layer.
template <class T>
struct kernel_code {
  using call = void (*)(const operands<T>&);
  call forward = nullptr, backward = nullptr, infer = nullptr;
  void (*backward_into)(const operands<T>&, const gradient_sink<T>&) = nullptr;
  void (*derive)(const T* const* w, T* derived) = nullptr;
  call collect = nullptr, collect_backward = nullptr;
  void (*update_state)(const operands<T>&, T* const* w) = nullptr;
};

template <class K, class T>
constexpr kernel_code<T> make_code() {
  kernel_code<T> c;
  if constexpr (!std::is_void_v<K>) {  // void: the sentence has been said
    if constexpr (!K::only_infers) c.forward = &K::forward, c.backward = &K::backward, c.infer = &K::forward;
    if constexpr (requires { &K::infer; }) c.infer = &K::infer;
    if constexpr (requires { &K::backward_into; }) c.backward_into = &K::backward_into;
    if constexpr (requires { &K::derive; }) c.derive = &K::derive;
    if constexpr (requires { &K::collect; }) {
      c.collect = &K::collect;
      c.collect_backward = &K::collect_backward;
      c.update_state = &K::update_state;
    }
  }
  return c;
}
template <class K, class T>
inline constexpr kernel_code<T> code_of = make_code<K, T>();

template <class Backend, class Operation, class Precision, shape... In>
concept has_kernel = requires { sizeof(kernel<Backend, Operation, Precision, In...>); };

/// Looks in the backend, then in the one it stands on (`using base = ...`); void if nobody has it.
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

}  // namespace strata
