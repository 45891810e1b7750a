// The messages between processes and their coordinator, method by method. Each is the body of a wire::envelope.
#pragma once
#include <chrono>
#include <cstdint>
#include <strata/communicators/wait_state.hpp>
#include <strata/control/member.hpp>
#include <strata/net/field.hpp>
#include <string>
#include <vector>

namespace strata::control {

/// One generation of a training.
struct formation {
  std::uint64_t generation = 0;
  std::vector<int> ranks{};      // in the first generation; the place in this list is the rank in this generation
  std::vector<int> newcomers{};  // places of those that were not in the generation before
  int computing = 0;             // how many of the first ones form complete groups; the others are spares. 0: there are no spares
  std::vector<int> lacking{};    // places in complete groups of spares of the generation before, which lack the newest state

  static constexpr auto message_name = "formation";
  using fields = wire::fields<wire::field<1, &formation::generation>, wire::field<2, &formation::ranks>,
                              wire::field<3, &formation::newcomers>, wire::field<4, &formation::computing>,
                              wire::field<5, &formation::lacking>>;
  friend bool operator==(const formation &, const formation &) = default;
};

inline constexpr std::size_t largest_value = 64 << 10, longest_key = 256;  // bytes of a stored value and of its key
inline constexpr std::size_t largest_answer = 4 << 20;                     // to get_all: 4 KB for each of 1,024 processes

struct coordinator_methods {
  static constexpr const char *set = "/strata.Coordinator/Set", *get = "/strata.Coordinator/Get",
                              *get_all = "/strata.Coordinator/GetAll", *join = "/strata.Coordinator/Join",
                              *enter = "/strata.Coordinator/Enter", *beat = "/strata.Coordinator/Beat",
                              *fail = "/strata.Coordinator/Fail", *leave = "/strata.Coordinator/Leave",
                              *form_again = "/strata.Coordinator/FormAgain", *announce = "/strata.Coordinator/Announce";
};

/// The request of `leave`, and answers without content.
struct empty_message {
  static constexpr auto message_name = "message";
  using fields = wire::fields<>;
};

struct set_request {
  std::string key{}, value{};
  static constexpr auto message_name = "set request";
  using fields = wire::fields<wire::field<1, &set_request::key>, wire::field<2, &set_request::value>>;
};

struct get_request {
  std::string key{};
  static constexpr auto message_name = "get request";
  using fields = wire::fields<wire::field<1, &get_request::key>>;
};
/// The answer to `get`, and to `fail`: what went wrong first.
struct value_answer {
  std::string value{};
  static constexpr auto message_name = "value";
  using fields = wire::fields<wire::field<1, &value_answer::value>>;
};

/// Asks for the values of prefix + "0" to prefix + (count - 1).
struct get_all_request {
  std::string prefix{};
  int count = 0;
  std::chrono::milliseconds timeout{};
  static constexpr auto message_name = "get_all request";
  using fields = wire::fields<wire::field<1, &get_all_request::prefix>, wire::field<2, &get_all_request::count>,
                              wire::field<3, &get_all_request::timeout>>;
};
struct get_all_answer {
  std::vector<std::string> values{};
  int missing = 0;                   // values; then there are none here
  std::vector<int> first_missing{};  // their indices, as many as an error shows
  static constexpr auto message_name = "get_all answer";
  using fields = wire::fields<wire::field<1, &get_all_answer::values>, wire::field<2, &get_all_answer::missing>,
                              wire::field<3, &get_all_answer::first_missing>>;
};

/// The reason why a generation is not complete.
struct absent_members {
  std::vector<int> missing{};          // ranks that never came
  std::vector<std::string> lost{};     // that had come, and whose connection was lost
  std::vector<std::string> gave_up{};  // that had come, and have not waited any longer

  static constexpr auto message_name = "list of absent members";
  using fields = wire::fields<wire::field<1, &absent_members::missing>, wire::field<2, &absent_members::lost>,
                              wire::field<3, &absent_members::gave_up>>;
};

/// The request of `join` and `enter`.
struct join_request {
  member who{};
  std::chrono::milliseconds timeout{};
  static constexpr auto message_name = "join request";
  using fields = wire::fields<wire::field<1, &join_request::who>, wire::field<2, &join_request::timeout>>;
};
struct form_again_request {
  bool is_spare = false;  // the process lacks the newest state of the training
  static constexpr auto message_name = "form_again request";
  using fields = wire::fields<wire::field<1, &form_again_request::is_spare>>;
};
/// The answer to `join`, `enter` and `form_again`.
struct join_answer {
  formation all{};          // without ranks: some did not come in time, or the process is late
  absent_members absent{};  // if some did not come in time
  static constexpr auto message_name = "join answer";
  using fields = wire::fields<wire::field<1, &join_answer::all>, wire::field<2, &join_answer::absent>>;
};

struct heartbeat_message {
  core::wait_state::report waits{};
  bool knows_failure = false;      // of its generation, and will come to the next one
  std::uint64_t knows_notice = 0;  // the number of the last notice that it has read
  static constexpr auto message_name = "heartbeat";
  using fields = wire::fields<wire::field<1, &heartbeat_message::waits>, wire::field<2, &heartbeat_message::knows_failure>,
                              wire::field<3, &heartbeat_message::knows_notice>>;
};
/// The status that a member announces, until it announces another. The coordinator answers once all have read it.
struct announcement {
  std::string trouble{};  // an error with which its program may end
  std::string work{};     // for which the others may have to wait, however long it takes: "saves a snapshot"
  static constexpr auto message_name = "announcement";
  using fields = wire::fields<wire::field<1, &announcement::trouble>, wire::field<2, &announcement::work>>;
};
/// The answer to a heartbeat: what members have announced.
struct notice {
  std::uint64_t number = 0;  // changes with the words
  std::string trouble{};     // the first error, and whose it is
  std::string work{};        // for which the others may have to wait, and whose it is
  static constexpr auto message_name = "notice";
  using fields = wire::fields<wire::field<1, &notice::number>, wire::field<2, &notice::trouble>, wire::field<3, &notice::work>>;
};

struct failure_report {
  int blames = -1;  // a process, as communicators number them; -1: none
  std::string why{};
  static constexpr auto message_name = "failure report";
  using fields = wire::fields<wire::field<1, &failure_report::blames>, wire::field<2, &failure_report::why>>;
};

}  // namespace strata::control
