// The messages between a worker in run_tasks and the chief's cluster_coordinator. Each is the body of a wire::envelope.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/distribute/wire/field.hpp>
#include <string>

namespace strata::detail {

inline constexpr const char* tasks_method = "/strata.Tasks/Run";
inline constexpr std::size_t largest_task = 1 << 20;  // bytes of an argument or a result

/// The first message of a worker. The sender of its envelope has all that the coordinator needs.
struct task_worker {
  static constexpr auto message_name = "first message of a worker";
  using fields = wire::fields<>;
};

struct task_call {
  std::string name{}, argument{};
  static constexpr auto message_name = "task";
  using fields = wire::fields<wire::field<1, &task_call::name>, wire::field<2, &task_call::argument, largest_task>>;
};

enum class task_outcome : std::uint8_t {
  done,
  failed,        // the task threw
  disconnected,  // the task threw communication_error
};
struct task_result {
  task_outcome outcome = task_outcome::failed;
  std::string bytes{};  // the result, or the text of the error
  static constexpr auto message_name = "result of a task";
  using fields = wire::fields<wire::field<1, &task_result::outcome, std::size_t(task_outcome::disconnected)>,
                              wire::field<2, &task_result::bytes, largest_task>>;
};

}  // namespace strata::detail
