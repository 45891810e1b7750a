// key_value_store: values that processes leave for each other before they are connected.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <string>
#include <vector>

namespace strata {

namespace core {
/// Some of the keys prefix + "0", prefix + "1", ... were not set in time. The message names them.
class missing_values : public communication_error {
 public:
  static constexpr std::size_t most_named = 16;

  /// `indices`: the first missing ones in ascending order, at least one. `count`: how many are missing.
  missing_values(const std::string& prefix, const std::vector<int>& indices, std::size_t count, std::chrono::milliseconds timeout)
      : communication_error(detail::text_of(
            {"no process has set ", listed(indices, count, '\'' + prefix, "'"), " within ", timeout.count(), " ms"})),
        first_(indices.front()),
        indices_(listed(indices, count)) {}

  int first() const { return first_; }
  /// "1, 3"; of many "1, 3, ... and 984 more".
  const std::string& indices() const { return indices_; }

 private:
  static std::string listed(const std::vector<int>& indices, std::size_t count, const std::string& before = {},
                            const std::string& after = {}) {
    const std::size_t named = std::min(indices.size(), most_named);
    std::string list;
    for (std::size_t i = 0; i < named; ++i) list += detail::text_of({i == 0 ? "" : ", ", before, indices[i], after});
    return named == count ? list : detail::text_of({list, " and ", count - named, " more"});
  }

  int first_;
  std::string indices_;
};

/// Values by key, shared by all processes of a training. A key is usually set once.
class key_value_store {
 public:
  virtual ~key_value_store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is set. Throws communication_error, naming the key, if it is not set in time.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;

  /// The values of prefix + "0" to prefix + (count - 1), once all are set. Throws missing_values if some are not set in time.
  /// This default gets each value by itself; a remote store overrides it.
  virtual std::vector<std::string> get_all(const std::string& prefix, int count, std::chrono::milliseconds timeout) {
    using std::chrono::milliseconds, std::chrono::steady_clock;
    const auto deadline = steady_clock::now() + timeout;
    std::vector<std::string> values;
    std::vector<int> missing;
    for (int i = 0; i < count; ++i) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
      try {
        // After the deadline the remaining keys are still tried, so that the error names all that are missing.
        values.push_back(get(detail::text_of({prefix, i}), std::max(left, milliseconds(10))));
      } catch (const communication_error&) {
        if (missing.empty() && steady_clock::now() < deadline) throw;  // another error than a time-out
        missing.push_back(i);
      }
    }
    if (!missing.empty()) throw missing_values(prefix, missing, missing.size(), timeout);
    return values;
  }
};
}  // namespace core

/// A store for threads of one process.
class in_process_store final : public core::key_value_store {
 public:
  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
      throw communication_error(detail::text_of({"no process has set '", key, "' within ", timeout.count(), " ms"}));
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace strata
