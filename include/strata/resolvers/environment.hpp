// Helpers of all resolvers: read environment variables and check their values.
#pragma once
#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>
#include <strata/base/exceptions.hpp>
#include <strata/base/hash.hpp>
#include <strata/resolvers/cluster.hpp>
#include <string>

namespace strata {

namespace core {
/// Returns the value of a variable; nothing if it is not set. Resolvers take it as an option, so that tests need no other
/// process.
using environment_reader = std::function<std::optional<std::string>(const std::string& name)>;

inline std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}
}  // namespace core

namespace detail {

/// Calls `make`, and prefixes its errors with the name of the resolver.
template <class F>
cluster resolved_by(const char* resolver, F&& make) {
  STRATA_TRY { return cluster(make()); }
  STRATA_CATCH(const strata_error& e) { throw_error({resolver, ": ", visible(e.what())}); }
}

/// Variables by name. An empty variable counts as not set.
class variables {
 public:
  explicit variables(const environment_reader& read) : read_(read) {}

  std::optional<std::string> text(const std::string& name) const {
    std::optional<std::string> value = read_(name);
    return value && value->empty() ? std::nullopt : value;
  }
  /// The value of the first variable that is set.
  template <class... Names>
  std::optional<std::string> first_of(const Names&... names) const {
    std::optional<std::string> value;
    ((value = text(names)) || ...);
    return value;
  }
  std::optional<int> number(const std::string& name, int low, int high) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    int number = 0;
    const auto [end, failed] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (failed != std::errc() || end != value->data() + value->size() || number < low || number > high)
      throw_error(formatted("%s is '%s', which is not a number from %d to %d", name.c_str(), value->c_str(), low, high));
    return number;
  }
  /// Throws strata_error with `advice` if the variable is not set.
  int number(const std::string& name, int low, int high, const std::string& advice) const {
    const std::optional<int> value = number(name, low, high);
    if (!value) throw_error(name + " is not set: " + advice);
    return *value;
  }
  std::optional<endpoint> address(const std::string& name) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    STRATA_TRY { return parse_endpoint(*value); }
    STRATA_CATCH(const strata_error& e) { throw_error(name + ": " + e.what()); }
  }

 private:
  const environment_reader& read_;
};

/// Variables that every resolver reads.
inline constexpr auto run_id_variable = "STRATA_RUN_ID", coordinator_variable = "STRATA_COORDINATOR";

inline constexpr int most_processes = 65'536, highest_port = 65'535;

/// A port for the coordinator of a run of which only the name is known, from 10000 to 29999: lower ports belong to well-known
/// services, and from 32768 on Linux uses ports for outgoing connections.
inline std::uint16_t port_of_run(const std::string& run_id) {
  return static_cast<std::uint16_t>(10'000 + hash_of<std::uint32_t>(run_id) % 20'000);
}

}  // namespace detail
}  // namespace strata
