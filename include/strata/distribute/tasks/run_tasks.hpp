// run_tasks: a worker executes what the chief's cluster_coordinator schedules. Needs gRPC.
// needs: grpc
#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <strata/distribute/tasks/cluster_coordinator.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata {

struct run_tasks_options {
  control_options control{};
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);  // until the chief is there
  std::chrono::milliseconds retry_for = std::chrono::seconds(3);      // how long it may be out of reach, each time
};

namespace detail {
/// An open call to the coordinator. gRPC's own threads answer pings while a task runs.
class task_session final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::ByteBuffer incoming_, outgoing_;
  std::optional<std::string> task_;
  bool written_ = false, was_connected_ = false, ended_ = false, is_held_ = true, is_over_ = false;
  grpc::Status status_;

 public:
  task_session(grpc::GenericStub& stub, const std::string& greeting, std::chrono::system_clock::time_point until)
      : outgoing_(buffer_of(greeting)) {
    context_.set_wait_for_ready(true);
    stub.PrepareBidiStreamingCall(&context_, tasks_method, {}, this);
    AddHold();  // OnDone would end the call that an answer is just written to
    StartRead(&incoming_);
    StartWrite(&outgoing_);
    StartCall();
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, until, [&] { return written_ || ended_; })) context_.TryCancel();
  }
  ~task_session() override {
    context_.TryCancel();
    finish();
  }
  void OnReadDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (ok) {
      task_ = text_of(incoming_);
      StartRead(&incoming_);
    } else {
      ended_ = true;
    }
    changed_.notify_all();
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    written_ = ok;
    was_connected_ = was_connected_ || ok;
    changed_.notify_all();
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    status_ = status, is_over_ = true;
    changed_.notify_all();
  }

  /// The next task; nothing when the call has ended: then somebody else gets what has not been answered.
  std::optional<std::string> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return task_ || ended_; });
    return ended_ ? std::nullopt : std::exchange(task_, std::nullopt);
  }
  void answer(const std::string& text) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return written_ || ended_; });
    if (ended_) return;
    written_ = false;
    outgoing_ = buffer_of(text);
    StartWrite(&outgoing_);
  }
  /// Whether there has been somebody to take the greeting.
  bool was_connected() {
    const std::lock_guard lock(mutex_);
    return was_connected_;
  }
  /// Why there is no next task.
  grpc::Status finish() {
    if (std::exchange(is_held_, false)) RemoveHold();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_; });
    return status_;
  }
};
}  // namespace detail

/// Executes tasks until the coordinator is destroyed. What a task throws is thrown in the chief.
///     run_tasks(tf_config()(), {}, train_steps{&model}, evaluate{&model});
/// Throws communication_error if the chief does not come, or stays away; strata::error if it belongs to another run.
template <remote_task... Tasks>
void run_tasks(const cluster& members, const run_tasks_options& options, Tasks&&... tasks) {
  const cluster_task chief = members.task_of_rank(0);
  const auto& address = members.address(chief);
  if (!address) throw error("run_tasks: nobody knows the address of " + to_string(chief));
  const std::string where = to_string(chief) + " at " + to_string(*address),
                    greeting = detail::greeting_of(members, members.task());
  grpc::GenericStub stub(detail::watched_channel(*address, options.control, detail::largest_task));

  const auto execute = [&](const std::string& text) {
    const std::pair<std::string, std::string> call = detail::split(text);  // name and argument
    std::string result = detail::joined("failed", "this worker knows no such task");
    const auto attempt = [&]<class Task>(Task& task) {
      if (call.first != Task::name) return;
      const typename Task::result value = task(detail::unpacked<typename Task::argument>(call.second, call.first));
      result = detail::joined("done", detail::packed(value));
    };
    try {
      (attempt(tasks), ...);
    } catch (const communication_error& e) {
      result = detail::joined("lost", e.what());
    } catch (const std::exception& e) {
      result = detail::joined("failed", e.what());
    }
    if (result.size() <= detail::largest_task) return result;
    return detail::joined("failed", "a result of " + std::to_string(result.size()) + " bytes is too large to be sent");
  };

  bool was_there = false;
  auto until = std::chrono::system_clock::now() + options.start_timeout;
  for (;;) {
    detail::task_session session(stub, greeting, until);
    while (const std::optional<std::string> task = session.next()) session.answer(execute(*task));
    const grpc::Status status = session.finish();
    if (status.ok()) return;
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) throw error("run_tasks: " + where + " schedules no tasks");
    if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION)
      throw error("run_tasks: " + where + ": " + status.error_message());
    const auto now = std::chrono::system_clock::now();
    if (session.was_connected())
      was_there = true, until = now + options.retry_for;
    else if (now >= until)
      throw communication_error("run_tasks: " + where + (was_there ? " is gone: " : " does not answer: ") +
                                status.error_message());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace strata
