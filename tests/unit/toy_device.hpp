// A device for tests. The host cannot read or write its addresses, and its queue starts work only in wait(). So a test fails if
// an engine, strategy or executor accesses device memory from the host or forgets to wait.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <strata/concepts/device.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/reference/reference.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::test {
using namespace core;

/// Two mappings of the same size: one provides device addresses, which are protected; the other one holds their contents.
class toy_memory {
  static constexpr std::size_t bytes = std::size_t{256} << 20;
  std::byte *addresses_, *contents_;
  std::size_t used_ = 0;

  static std::byte* map(int protection) {
    return static_cast<std::byte*>(::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }

 public:
  toy_memory() : addresses_(map(PROT_NONE)), contents_(map(PROT_READ | PROT_WRITE)) {}
  toy_memory(const toy_memory&) = delete;
  toy_memory& operator=(const toy_memory&) = delete;
  ~toy_memory() { ::munmap(addresses_, bytes), ::munmap(contents_, bytes); }

  /// Returns zeroed memory, which is never reused.
  std::byte* allocate(std::size_t size) {
    std::byte* const at = addresses_ + used_;
    used_ += (size + 63) / 64 * 64;
    if (used_ > bytes) std::abort();
    return at;
  }
  /// The host address of the contents of a device address. Aborts if the argument is not a device address.
  template <class T>
  T* contents(T* address) const {
    if (address == nullptr) return nullptr;
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(addresses_);
    if (offset >= bytes) std::abort();
    return reinterpret_cast<T*>(contents_ + offset);
  }
};

struct toy_device {
  static constexpr bool is_host = false;

  struct state {
    toy_memory memory;
    std::vector<std::function<void()>> work;  // enqueued and not yet done
  };
  struct queue {
    state* on = nullptr;
    template <class F>
    void enqueue(F&& work) const {
      on->work.push_back(std::forward<F>(work));
    }
  };
  template <class T>
  class buffer {
    T* address_ = nullptr;
    std::size_t size_ = 0;

   public:
    buffer() = default;
    buffer(T* address, std::size_t size) : address_(address), size_(size) {}
    buffer(buffer&& from) noexcept : address_(std::exchange(from.address_, nullptr)), size_(std::exchange(from.size_, 0)) {}
    buffer& operator=(buffer&& from) noexcept {
      address_ = std::exchange(from.address_, nullptr), size_ = std::exchange(from.size_, 0);
      return *this;
    }
    T* data() const { return address_; }
    std::size_t size() const { return size_; }
  };

  std::shared_ptr<state> shared = std::make_shared<state>();

  queue make_queue() const { return {shared.get()}; }
  template <class T>
  buffer<T> allocate(std::size_t size) const {
    return {reinterpret_cast<T*>(shared->memory.allocate(size * sizeof(T))), size};
  }
  template <class T>
  void copy_to_device(queue q, std::span<const T> values, T* to) const {
    q.enqueue([q, to, copy = std::vector<T>(values.begin(), values.end())] {
      std::copy(copy.begin(), copy.end(), q.on->memory.contents(to));
    });
  }
  template <class T>
  void copy_to_host(queue q, const T* from, std::span<T> values) const {
    q.enqueue([q, from, values] { std::copy_n(q.on->memory.contents(from), values.size(), values.data()); });
  }
  void wait(queue q) const {
    for (std::size_t i = 0; i < q.on->work.size(); ++i) q.on->work[i]();
    q.on->work.clear();
  }
};
static_assert(computing_device<toy_device> && computing_device<host_device>);

/// The kernels of the reference, on toy_device.
struct toy {
  static constexpr auto name = "toy";
  using device = toy_device;
};

/// The same operands at host addresses, for the reference kernel.
template <class T>
operands<T> followed(const toy_memory& memory, operands<T> o) {
  const auto follow = [&](auto*& pointer) { pointer = memory.contents(pointer); };
  for (auto& each : o.x) follow(each);
  for (auto& each : o.w) follow(each);
  for (auto& each : o.dx) follow(each);
  for (auto& each : o.dw) follow(each);
  follow(o.y), follow(o.derived), follow(o.dy), follow(o.saved), follow(o.scratch), follow(o.statistics);
  follow(o.labels), follow(o.targets), follow(o.weights), follow(o.loss);
  return o;
}

template <class Kernel, class T>
struct on_toy {
  using queue = toy_device::queue;
  static constexpr kernel_traits traits = traits_of_kernel<Kernel>;

  static void forward(queue q, const operands<T>& o) {
    run(q, o, [](const operands<T>& on) { Kernel::forward(on); });
  }
  static void backward(queue q, const operands<T>& o) {
    run(q, o, [](const operands<T>& on) { Kernel::backward(on); });
  }
  static void infer(queue q, const operands<T>& o) {
    run(q, o, [](const operands<T>& on) {
      if constexpr (requires { &Kernel::infer; })
        Kernel::infer(on);
      else
        Kernel::forward(on);
    });
  }

 protected:
  static void run(queue q, const operands<T>& o, void (*call)(const operands<T>&)) {
    q.enqueue([q, o, call] { call(followed(q.on->memory, o)); });
  }
};
template <class Kernel, class T>
struct on_toy_by_batch : on_toy<Kernel, T> {
  using queue = toy_device::queue;
  static void collect(queue q, const operands<T>& o) {
    on_toy<Kernel, T>::run(q, o, [](const operands<T>& on) { Kernel::collect(on); });
  }
  static void collect_backward(queue q, const operands<T>& o) {
    on_toy<Kernel, T>::run(q, o, [](const operands<T>& on) { Kernel::collect_backward(on); });
  }
  static void update_state(queue q, const operands<T>& o, T* const* w) {
    std::vector<T*> state(w, w + max_group_parameters);
    q.enqueue([q, o, state]() mutable {
      for (T*& each : state) each = q.on->memory.contents(each);
      Kernel::update_state(followed(q.on->memory, o), state.data());
    });
  }
};

template <class Operation, class Precision, shape... In>
using reference_kernel = typename find_kernel<reference, Operation, Precision, In...>::type;
template <class Kernel>
inline constexpr bool takes_whole_batch = requires { &Kernel::collect; };
template <class Kernel, class T>
using wrapped_for_toy = std::conditional_t<takes_whole_batch<Kernel>, on_toy_by_batch<Kernel, T>, on_toy<Kernel, T>>;
}  // namespace strata::test

namespace strata::core {
template <class Operation, class Precision, shape... In>
  requires(!std::is_void_v<test::reference_kernel<Operation, Precision, In...>>)
struct kernel<test::toy, Operation, Precision, In...>
    : test::wrapped_for_toy<test::reference_kernel<Operation, Precision, In...>, typename Precision::value_type> {};
}  // namespace strata::core
