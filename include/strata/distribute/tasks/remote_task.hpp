// A function that a coordinator has executed in a worker, what travels for it, and the value that comes back.
#pragma once
#include <concepts>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <strata/base/error.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strata {

/// What fits into a message: a text, or a plain value without pointers, as it lies in memory.
template <class T>
concept remote_data = std::same_as<T, std::string> || (std::is_trivially_copyable_v<T> && std::default_initializable<T>);

/// A type with a `name`, an `argument`, a `result` and an operator() from one to the other. Workers have objects of it, whose
/// members may be as large as they like; only the name and the argument travel to them. It may be executed more than once: in a
/// worker that is lost before it has said the result, and again in another.
template <class Task>
concept remote_task = remote_data<typename Task::argument> && remote_data<typename Task::result> &&
    requires(Task& task, typename Task::argument argument) {
      { Task::name } -> std::convertible_to<std::string_view>;
      { task(std::move(argument)) } -> std::convertible_to<typename Task::result>;
    };

namespace detail {
template <remote_data T>
std::string packed(const T& value) {
  if constexpr (std::same_as<T, std::string>)
    return value;
  else
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
/// Throws strata::error if the other side has another type of that name.
template <remote_data T>
T unpacked(std::string_view bytes, std::string_view task) {
  if constexpr (std::same_as<T, std::string>) {
    return std::string(bytes);
  } else {
    T value{};
    if (bytes.size() != sizeof value)
      throw error(std::string(task) + ": " + std::to_string(bytes.size()) + " bytes came instead of " +
                  std::to_string(sizeof value));
    std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
    return value;
  }
}

/// Where the result goes, once.
class remote_outcome {
  std::mutex mutex_;
  std::condition_variable there_;
  bool is_there_ = false;
  std::string bytes_;
  std::exception_ptr problem_;

 public:
  void set(std::string bytes, std::exception_ptr problem) {
    const std::lock_guard lock(mutex_);
    bytes_ = std::move(bytes), problem_ = std::move(problem), is_there_ = true;
    there_.notify_all();
  }
  bool is_there() {
    const std::lock_guard lock(mutex_);
    return is_there_;
  }
  const std::string& wait() {
    std::unique_lock lock(mutex_);
    there_.wait(lock, [&] { return is_there_; });
    if (problem_) std::rethrow_exception(problem_);
    return bytes_;
  }
};
}  // namespace detail

/// What a scheduled task will have returned.
template <remote_task Task>
class remote_value {
  std::shared_ptr<detail::remote_outcome> outcome_;

 public:
  explicit remote_value(std::shared_ptr<detail::remote_outcome> outcome) : outcome_(std::move(outcome)) {}
  bool is_ready() const { return outcome_->is_there(); }
  /// Waits, for ever if no worker comes: only cluster_coordinator::join notices that. Throws what the task threw, or
  /// strata::error if it has been cancelled because another one failed.
  typename Task::result fetch() const { return detail::unpacked<typename Task::result>(outcome_->wait(), Task::name); }
};

}  // namespace strata
