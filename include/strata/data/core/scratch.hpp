// Short-lived memory of a thread, which is allocated once and reused.
#pragma once
#include <cstddef>
#include <strata/base/arena.hpp>
#include <type_traits>
#include <vector>

namespace strata::data::detail {

/// n values of T, not initialised, until the end of the scope. Scopes may nest.
template <class T>
  requires std::is_trivially_copyable_v<T>
class scratch {
 public:
  explicit scratch(std::size_t n) {
    levels& mine = of_this_thread();
    if (mine.used == mine.memory.size()) mine.memory.emplace_back();
    arena<std::byte>& memory = mine.memory[mine.used++];
    memory.grow(n * sizeof(T));
    data_ = reinterpret_cast<T*>(memory.data());
  }
  ~scratch() { --of_this_thread().used; }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  T* data() const { return data_; }

 private:
  struct levels {
    std::vector<arena<std::byte>> memory;
    std::size_t used = 0;
  };
  static levels& of_this_thread() {
    thread_local levels mine;
    return mine;
  }

  T* data_;
};

}  // namespace strata::data::detail
