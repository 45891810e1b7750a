// message_memory: memory of this process for messages.
#pragma once
#include <cstddef>
#include <strata/base/arena.hpp>

namespace strata::core {

class message_memory {
 public:
  message_memory() = default;
  explicit message_memory(std::size_t bytes) : bytes_(bytes) {}

  std::byte* data() { return bytes_.data(); }

 private:
  arena<std::byte> bytes_;
};

}  // namespace strata::core
