// The values that the coordinator keeps for the processes of a run.
#pragma once
#include <cstddef>
#include <map>
#include <strata/base/text.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/control/control_messages.hpp>
#include <string>
#include <utility>

namespace strata::control {

/// The values of a generation, by key. The memory that they take is bounded.
class coordinator_values {
 public:
  static bool is_key(const std::string& key) { return !key.empty() && key.size() <= longest_key; }
  static std::string no_key(const std::string& key) {
    return detail::text_of({"a key has 1 to ", longest_key, " bytes, not ", key.size()});
  }
  static std::string key_of(const get_all_request& wanted, int index) { return detail::text_of({wanted.prefix, index}); }

  /// The value of a key, or null.
  const std::string* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  /// Keeps a value until it is set anew. Returns the kept one, or null if there is no room for it.
  const std::string* set(const std::string& key, std::string value) {
    const auto found = values_.find(key);
    const std::size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
    const std::size_t kept = kept_ - before + key.size() + value.size();
    if (kept > most_kept || (found == values_.end() && values_.size() >= most_keys)) return nullptr;
    kept_ = kept;
    return &(values_[key] = std::move(value));
  }
  void clear() {
    values_.clear();
    kept_ = 0;
  }

  /// The answer to get_all when all values are there.
  get_all_answer all(const get_all_request& wanted) const {
    get_all_answer answer;
    for (int i = 0; i < wanted.count; ++i) answer.values.push_back(values_.at(key_of(wanted, i)));
    return answer;
  }
  /// The answer to get_all when its time is up. The first `found` values are there.
  get_all_answer missing(const get_all_request& wanted, int found) const {
    get_all_answer answer;
    for (int i = found; i < wanted.count; ++i)
      if (!values_.contains(key_of(wanted, i)) && std::size_t(++answer.missing) <= core::missing_values::most_named)
        answer.first_missing.push_back(i);
    return answer;
  }

 private:
  static constexpr std::size_t most_keys = 1 << 16, most_kept = 8 << 20;

  std::map<std::string, std::string> values_;
  std::size_t kept_ = 0;  // bytes of keys and values
};

}  // namespace strata::control
