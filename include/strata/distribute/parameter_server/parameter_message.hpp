// What workers and parameter servers send each other: a header of fixed size, then numbers as they lie in memory.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <strata/base/hash.hpp>
#include <type_traits>

namespace strata::detail {

static_assert(std::endian::native == std::endian::little, "messages hold numbers as they lie in memory, lowest byte first");

struct parameter_header {
  std::uint32_t magic = 0x53505453;  // "STPS"
  std::uint16_t format = 1, leaves = 1;
  std::uint64_t run = 0;
  std::uint32_t worker = 0, shard = 0;
  std::uint64_t incarnation = 0;
  std::int64_t step = 0;  // in an answer: updates so far
  double learning_rate = 0;
  std::uint32_t samples = 0, flags = 0;

  bool is_ours() const { return magic == parameter_header{}.magic && format == parameter_header{}.format; }
};
static_assert(sizeof(parameter_header) == 56 && std::is_trivially_copyable_v<parameter_header>);

inline constexpr std::uint32_t initial_flag = 1;  // of an assignment: only where there are no weights
inline constexpr std::uint32_t again_flag = 2;    // of a pull: this worker has had weights
inline constexpr std::uint32_t rows_flag = 4;     // of a pull: names rows of tables, shard_contents::names_of
struct parameter_methods {
  static constexpr const char *join = "/strata.Parameters/Join", *leave = "/strata.Parameters/Leave",
                              *assign = "/strata.Parameters/Assign", *push = "/strata.Parameters/Push",
                              *pull = "/strata.Parameters/Pull";
};

}  // namespace strata::detail
