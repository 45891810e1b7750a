// A device: the memory of arrays, and the queues that order work on them.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <strata/base/arena.hpp>

namespace strata {

namespace core {
/// A value that names one device; copies name the same one.
///   `is_host`                    whether the program itself can dereference pointers into its memory
///   `queue`                      work that is done in order; kernels are called with one, so it is as cheap to copy as a pointer
///   `buffer<T>`                  memory of the device: `data()` is its address, which only kernels may follow, and `size()`
///   `allocate<T>(size)`          a zeroed buffer
///   `copy_to_device(queue, values, to)`, `copy_to_host(queue, from, values)`  may return before they are done
///   `wait(queue)`                returns when everything on the queue is done; throws strata_error if it has failed
template <class D>
concept computing_device =
    std::copyable<D> && std::default_initializable<typename D::template buffer<float>> &&
    std::movable<typename D::template buffer<float>> && std::copyable<typename D::queue> &&
    requires(const D& d, typename D::queue& queue, typename D::template buffer<float>& memory, std::size_t size, float* to,
             const float* from, std::span<float> values, std::span<const float> constants) {
      { D::is_host } -> std::convertible_to<bool>;
      { d.make_queue() } -> std::same_as<typename D::queue>;
      { d.template allocate<float>(size) } -> std::same_as<typename D::template buffer<float>>;
      { memory.data() } -> std::same_as<float*>;
      { memory.size() } -> std::same_as<std::size_t>;
      d.copy_to_device(queue, constants, to);
      d.copy_to_host(queue, from, values);
      d.wait(queue);
    };

/// The host. A call returns when its work is done, so the queue is empty and is not passed on.
struct host_device {
  static constexpr bool is_host = true;
  struct queue {};
  template <class T>
  using buffer = arena<T>;

  static constexpr queue make_queue() { return {}; }
  template <class T>
  static buffer<T> allocate(std::size_t size) {
    return buffer<T>(size);
  }
  template <class T>
  static void copy_to_device(queue, std::span<const T> values, T* to) {
    std::ranges::copy(values, to);
  }
  template <class T>
  static void copy_to_host(queue, const T* from, std::span<T> values) {
    std::copy_n(from, values.size(), values.data());
  }
  static constexpr void wait(queue) {}
};
}  // namespace core

namespace detail {
template <class Backend>
struct find_device {
  using type = host_device;
};
template <class Backend>
  requires requires { typename Backend::device; }
struct find_device<Backend> {
  using type = typename Backend::device;
};
}  // namespace detail

namespace core {
/// The device of a backend's kernels: `Backend::device`, or the host.
template <class Backend>
using device_of = typename detail::find_device<Backend>::type;
}  // namespace core

}  // namespace strata
