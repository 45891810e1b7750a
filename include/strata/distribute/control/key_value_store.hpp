// Where processes leave words for each other before they are connected.
#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <strata/concepts/communicator.hpp>
#include <string>

namespace strata {

/// Keys that are written once and seen by all processes of a training.
class key_value_store {
 public:
  virtual ~key_value_store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until somebody has set it. Throws communication_error, naming the key, if nobody does in time.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
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
