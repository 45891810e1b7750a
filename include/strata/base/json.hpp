// nlohmann's JSON. In a program without exceptions its failures end the program, as strata's own do.
#pragma once
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>

#if !defined(__cpp_exceptions) && !defined(JSON_THROW_USER)
#ifdef INCLUDE_NLOHMANN_JSON_HPP_
#error \
    "without exceptions, include strata's headers before nlohmann/json.hpp: otherwise its errors end the program without a message"
#endif
#define JSON_THROW_USER(failure) ::strata::core::throw_exception(failure)
#define JSON_TRY_USER if (true)
#define JSON_CATCH_USER(failure) if (false)
#endif
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace strata::detail {

/// Parses untrusted JSON in time proportional to its length. Throws strata_error, which begins with `what`, if it is
/// nested more than `most_levels` deep or an object has a duplicate key, of which the parser would use the last; and the parser's
/// own errors. A first pass that stores nothing checks both: a parser with a callback that stores values would traverse all
/// members of the parent so far whenever an object ends.
inline nlohmann::json parse_json(std::string_view what, std::string_view text, int most_levels) {
  using json = nlohmann::json;
  std::vector<std::set<std::string>> keys(static_cast<std::size_t>(most_levels));
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    const bool is_object = event == json::parse_event_t::object_start;
    if ((is_object || event == json::parse_event_t::array_start) && depth >= most_levels)
      throw_error({what, " is nested more than ", most_levels, " levels deep"});
    if (is_object) keys[static_cast<std::size_t>(depth)].clear();
    if (event == json::parse_event_t::key && !keys[static_cast<std::size_t>(depth - 1)].insert(parsed.get<std::string>()).second)
      throw_error({what, " has the key ", detail::quoted(parsed.get<std::string>()), " twice in one object"});
    return false;
  };
  [[maybe_unused]] const json nothing = json::parse(text, watch);
  return json::parse(text);
}

}  // namespace strata::detail
