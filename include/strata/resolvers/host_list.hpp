// Slurm's compressed lists of hosts, "node[01-03,07],gpu-[1-2]", and of tasks per host, "2(x3),1".
#pragma once
#include <algorithm>
#include <charconv>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/net/endpoint.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::detail {

inline constexpr std::size_t most_hosts = 65'536;

/// Reads a number that consists of digits only. Returns false for any other text.
inline bool read_digits(std::string_view text, int& number) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() && text.front() != '-';
}

/// Expands the text between brackets: "01-03,07" is {"01", "02", "03", "07"}. Numbers have as many digits as the first of the
/// range.
inline std::vector<std::string> expand_ranges(std::string_view list) {
  std::vector<std::string> out;
  while (true) {
    const std::string_view range = list.substr(0, list.find(','));
    const std::string_view low = range.substr(0, range.find('-'));
    const std::string_view high = low.size() == range.size() ? low : range.substr(low.size() + 1);
    int first = 0, last = 0;
    if (!read_digits(low, first) || !read_digits(high, last) || last < first)
      throw_error({"'", range, "' is not a range of numbers such as 01-03"});
    if (low.size() > longest_host) throw_error({"a number has ", low.size(), " digits"});
    if (static_cast<std::size_t>(last - first) >= most_hosts - out.size())
      throw_error({"'", range, "' has more than 65536 hosts", out.empty() ? "" : " with those before it"});
    for (long i = first; i <= last; ++i) out.push_back(formatted("%0*ld", static_cast<int>(low.size()), i));
    if (range.size() == list.size()) return out;
    list.remove_prefix(range.size() + 1);
  }
}

/// All hosts of a list, in its order. A name with several brackets stands for all combinations; the last bracket varies fastest.
inline std::vector<std::string> expand_hosts(const std::string& list) {
  const auto refuse = [&](const std::string& why) -> void { throw_error({"the host list '", list, "': ", why}); };
  std::vector<std::string> out, names{""};
  std::size_t length = 0;  // of the longest of the names
  const auto lengthen = [&](std::size_t by) {
    if ((length += by) > longest_host) refuse(text_of({"a name has more than ", longest_host, " characters"}));
  };
  const auto finish = [&] {
    if (names.front().empty()) refuse("a name is empty");
    out.insert(out.end(), names.begin(), names.end());
    names = {""};
    length = 0;
  };
  std::string_view rest = list;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == ',') {
      finish();
      if (rest.empty()) refuse("a name is empty");
    } else if (c == '[') {
      const std::size_t end = rest.find(']');
      if (end == rest.npos) refuse("a '[' has no ']'");
      std::vector<std::string> parts, product;
      try {
        parts = expand_ranges(rest.substr(0, end));
      } catch (const strata_error& e) {
        refuse(e.what());
      }
      if (out.size() + names.size() * parts.size() > most_hosts) refuse("it has more than 65536 hosts");
      lengthen(std::ranges::max_element(parts, {}, &std::string::size)->size());
      for (const std::string& name : names) {
        for (const std::string& part : parts) product.push_back(name + part);
      }
      names = std::move(product);
      rest.remove_prefix(end + 1);
    } else if (c == ']') {
      refuse("a ']' has no '['");
    } else {
      lengthen(1);
      for (std::string& name : names) name += c;
    }
  }
  finish();
  return out;
}

/// Tasks per host: "2(x3),1" is {2, 2, 2, 1}.
inline std::vector<int> expand_counts(const std::string& list) {
  std::vector<int> out;
  for (std::string_view rest = list; true;) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    const std::string_view number = entry.substr(0, entry.find('('));
    std::string_view times = number.size() == entry.size() ? "(x1)" : entry.substr(number.size());
    int count = 0, repeated = 0;
    const bool bracketed = times.size() > 3 && times.starts_with("(x") && times.ends_with(')');
    if (!read_digits(number, count) || !bracketed || !read_digits(times.substr(2, times.size() - 3), repeated) || repeated < 1)
      throw_error({"the task counts '", list, "' are not a list such as 2(x3),1"});
    if (out.size() + static_cast<std::size_t>(repeated) > most_hosts)
      throw_error({"the task counts '", list, "' are of more than 65536 hosts"});
    out.insert(out.end(), static_cast<std::size_t>(repeated), count);
    if (entry.size() == rest.size()) return out;
    rest.remove_prefix(entry.size() + 1);
  }
}

}  // namespace strata::detail
