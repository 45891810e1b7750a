// A task that a worker executes for the coordinator: its argument, its result, and the value that the chief waits for.
#pragma once
#include <concepts>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strata {

/// An argument or a result: a std::string, or a value without pointers that is sent as it lies in memory.
template <class T>
concept remote_data = std::same_as<T, std::string> || (std::is_trivially_copyable_v<T> && std::default_initializable<T>);

/// A type with a `name`, an `argument`, a `result`, and an operator() from one to the other. Each worker has an object of it,
/// with members of any size; only the name and the argument are sent. A task may be executed more than once: another worker
/// repeats it if the first is lost before its result arrived.
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
/// Throws strata::error if chief and worker do not have the same type under that name.
template <remote_data T>
T unpacked(std::string_view bytes, std::string_view task) {
  if constexpr (std::same_as<T, std::string>) {
    return std::string(bytes);
  } else {
    T value{};
    if (bytes.size() != sizeof value) throw_error({task, ": received ", bytes.size(), " bytes instead of ", sizeof value});
    std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
    return value;
  }
}

/// The result of one task, or why there is none; set once.
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

/// The result of a scheduled task, perhaps in the future.
template <remote_task Task>
class remote_value {
  std::shared_ptr<detail::remote_outcome> outcome_;

 public:
  explicit remote_value(std::shared_ptr<detail::remote_outcome> outcome) : outcome_(std::move(outcome)) {}
  bool is_ready() const { return outcome_->is_there(); }
  /// Waits for the result, without end if no worker connects: only cluster_coordinator::join notices that. Throws the error of
  /// the task, and strata::error if it was cancelled because another task failed.
  typename Task::result fetch() const { return detail::unpacked<typename Task::result>(outcome_->wait(), Task::name); }
};

}  // namespace strata
