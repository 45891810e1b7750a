// Where processes leave words for each other before they are connected.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <strata/concepts/communicator.hpp>
#include <string>
#include <vector>

namespace strata {

/// Nobody has set some of the keys prefix + "0", prefix + "1", ... in time. The message names them.
class missing_values : public communication_error {
 public:
  static constexpr std::size_t most_named = 16;

  /// `numbers` are in order, at least one; of many the first are enough. `count` is how many there are.
  missing_values(const std::string& prefix, const std::vector<int>& numbers, std::size_t count,
                 std::chrono::milliseconds timeout)
      : communication_error("nobody has set " + listed(numbers, count, '\'' + prefix, "'") + " within " +
                            std::to_string(timeout.count()) + " ms"),
        first_(numbers.front()), numbers_(listed(numbers, count)) {}

  int first() const { return first_; }
  /// "1, 3"; of many "1, 3, ... and 984 more".
  const std::string& numbers() const { return numbers_; }

 private:
  static std::string listed(const std::vector<int>& numbers, std::size_t count, const std::string& before = {},
                            const std::string& after = {}) {
    const std::size_t named = std::min(numbers.size(), most_named);
    std::string list;
    for (std::size_t i = 0; i < named; ++i) list += (i == 0 ? "" : ", ") + before + std::to_string(numbers[i]) + after;
    return named == count ? list : list + " and " + std::to_string(count - named) + " more";
  }

  int first_;
  std::string numbers_;
};

/// Keys that are written once and seen by all processes of a training.
class key_value_store {
 public:
  virtual ~key_value_store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until somebody has set it. Throws communication_error, naming the key, if nobody does in time.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;

  /// The values of prefix + "0" to prefix + (count - 1), once all are there. Throws missing_values if some are not set in time.
  /// This one asks for each of them: a store that is elsewhere does better.
  virtual std::vector<std::string> get_all(const std::string& prefix, int count, std::chrono::milliseconds timeout) {
    using std::chrono::milliseconds, std::chrono::steady_clock;
    const auto deadline = steady_clock::now() + timeout;
    std::vector<std::string> values;
    std::vector<int> missing;
    for (int i = 0; i < count; ++i) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
      try {
        // After the deadline the others are still asked, so that all that are missing are named.
        values.push_back(get(prefix + std::to_string(i), std::max(left, milliseconds(10))));
      } catch (const communication_error&) {
        if (missing.empty() && steady_clock::now() < deadline) throw;  // not for want of patience
        missing.push_back(i);
      }
    }
    if (!missing.empty()) throw missing_values(prefix, missing, missing.size(), timeout);
    return values;
  }
};

/// For threads of one process.
class in_process_store final : public key_value_store {
 public:
  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
      throw communication_error("nobody has set '" + key + "' within " + std::to_string(timeout.count()) + " ms");
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace strata
