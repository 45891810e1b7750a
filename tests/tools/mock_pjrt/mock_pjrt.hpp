// The part of the mock plugin that tests see. It is a PJRT plugin whose devices are in this process, and it detects what is
// undefined with real plugins. It interprets only the signature of a module: a result that an argument is donated to is that
// argument plus 1, any other result counts its elements from 0.
//
// Given callbacks for values and the options num_nodes and node_id, a client has two devices in each process, and an execution on
// all of them ends when all processes have begun it. No elements are exchanged.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace mock_pjrt {

struct observations {
  /// Objects of each kind that are alive: "client", "buffer", "event", "executable", "loaded executable", "error".
  std::map<std::string, int> alive;
  /// Forbidden calls, such as reading an array that has been donated.
  std::vector<std::string> violations;
  std::map<std::string, int> calls;  // of each function, by its name in abi.hpp
  std::vector<std::string> options_of_clients;
  std::vector<std::vector<std::byte>> last_arguments;  // of replica 0 in the last execution that has ended
  int executions = 0;
  std::vector<std::string> order;  // "upload", "execute 1", "end 1": executions end when their results are awaited

  /// Calls of this function fail with this code and message, after the first `failing_after` of them.
  std::string failing_function;
  int failing_after = 0, failing_code = 13;
  /// Compilations fail if their options contain this text.
  std::string unknown_option;
  std::string failing_message = "injected";
  int devices_of_other_hosts = 0;
  /// The next execution fails while it runs, after it has been accepted.
  bool execution_fails = false;
  /// Copies to devices that begin now never end.
  bool uploads_hang = false;

  int all_alive() const {
    int n = 0;
    for (const auto& [kind, count] : alive) n += count;
    return n;
  }
};

/// The observations of all clients of the plugin that the test links.
observations& observed();

// When a plugin is loaded, the environment variable MOCK_PJRT determines which table GetPjrtApi returns:
//   "minor N"       another version
//   "without SLOT"  a function is missing
//   "size SLOT N"   a function requires N bytes of arguments
//   "unchecked"     no function checks sizes

}  // namespace mock_pjrt
