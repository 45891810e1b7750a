// The messages between workers and parameter servers, method by method. Each is the body of a wire::envelope, whose elements are
// weights or gradients.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/net/field.hpp>
#include <vector>

namespace strata::detail {

/// `join` is a join_request, and its call stays open; `leave` is an empty_message, `announce` an announcement
/// (control_messages.hpp).
struct parameter_methods {
  static constexpr const char *join = "/strata.Parameters/Join", *leave = "/strata.Parameters/Leave",
                              *assign = "/strata.Parameters/Assign", *push = "/strata.Parameters/Push",
                              *pull = "/strata.Parameters/Pull", *announce = "/strata.Parameters/Announce";
};
inline constexpr std::size_t most_rows = 1 << 20, most_metric_sums = 1 << 20;  // in one message

/// Elements: the weights of the shard.
struct assign_message {
  std::uint32_t shard = 0;
  bool is_initial = false;  // ignored where the shard has weights
  static constexpr auto message_name = "assignment";
  using fields = wire::fields<wire::field<1, &assign_message::shard>, wire::field<2, &assign_message::is_initial>>;
};

/// No elements.
struct pull_message {
  std::uint32_t shard = 0;
  bool had_weights = false;           // this worker has had weights of the servers
  bool wants_rows = false;            // of tables; otherwise the whole shard
  std::vector<std::uint32_t> rows{};  // in ascending order, each once
  static constexpr auto message_name = "pull";
  using fields = wire::fields<wire::field<1, &pull_message::shard>, wire::field<2, &pull_message::had_weights>,
                              wire::field<3, &pull_message::wants_rows>, wire::field<4, &pull_message::rows, most_rows>>;
};

/// Elements: the partial gradients of this worker one after the other. Each is the gradient of the rest of the shard, then that
/// of `rows`.
struct push_message {
  std::uint32_t shard = 0;
  std::int64_t step = 0;
  double learning_rate = 0;
  int samples = 0;
  int leaves = 1;
  std::vector<std::uint32_t> rows{};  // in ascending order, each once
  std::vector<double> metric_sums{};  // of this worker's leaves; with the first shard of a synchronous step
  static constexpr auto message_name = "push";
  using fields = wire::fields<wire::field<1, &push_message::shard>, wire::field<2, &push_message::step>,
                              wire::field<3, &push_message::learning_rate>, wire::field<4, &push_message::samples>,
                              wire::field<5, &push_message::leaves>, wire::field<6, &push_message::rows, most_rows>,
                              wire::field<7, &push_message::metric_sums, most_metric_sums>>;
};

/// Elements: the weights that were asked for, or nothing.
struct weights_answer {
  std::int64_t version = -1;          // updates of the shard so far
  std::vector<double> metric_sums{};  // of all leaves of a synchronous step; with the first shard
  static constexpr auto message_name = "answer with weights";
  using fields =
      wire::fields<wire::field<1, &weights_answer::version>, wire::field<2, &weights_answer::metric_sums, most_metric_sums>>;
};

}  // namespace strata::detail
