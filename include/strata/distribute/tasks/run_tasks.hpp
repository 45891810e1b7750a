// run_tasks: a worker executes the tasks that the chief's cluster_coordinator schedules. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/distribute/control/server_connection.hpp>
#include <strata/distribute/control/waiting_notice.hpp>
#include <strata/distribute/tasks/cluster_coordinator.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata {

struct run_tasks_options {
  control_options control{};
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);  // until the chief answers
  std::chrono::milliseconds retry_for = std::chrono::seconds(3);      // how long the chief may be out of reach, each time
};

namespace detail {
/// An open call to the coordinator. gRPC's threads answer pings while a task runs.
class task_session final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::ByteBuffer incoming_, outgoing_;
  std::optional<grpc::ByteBuffer> task_;
  bool written_ = false, was_connected_ = false, ended_ = false, is_held_ = true, is_over_ = false;
  grpc::Status status_;

 public:
  task_session(grpc::GenericStub& stub, const wire::sender& self, waiting_notice& notice, const std::string& what)
      : outgoing_(wire::sealed(self, task_worker{})) {
    stub.PrepareBidiStreamingCall(&context_, tasks_method, {}, this);
    AddHold();  // or OnDone could come while a result is being written
    StartRead(&incoming_);
    StartWrite(&outgoing_);
    StartCall();
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, notice.pause(), [&] { return written_ || ended_; })) {
      if (notice.left() == std::chrono::milliseconds(0)) {
        context_.TryCancel();
        return;
      }
      lock.unlock();  // the listener may take its time
      try {
        notice.tell(what);
      } catch (...) {  // gRPC uses this object until the call has ended
        context_.TryCancel();
        finish();
        throw;
      }
      lock.lock();
    }
  }
  ~task_session() override {
    context_.TryCancel();
    finish();
  }
  void OnReadDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (ok) {
      task_ = incoming_;
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

  /// The next task; nothing when the call has ended: another worker then gets the task that was not answered.
  std::optional<grpc::ByteBuffer> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return task_ || ended_; });
    return ended_ ? std::nullopt : std::exchange(task_, std::nullopt);
  }
  void answer(const task_result& result) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return written_ || ended_; });
    if (ended_) return;
    written_ = false;
    outgoing_ = wire::sealed(result);
    StartWrite(&outgoing_);
  }
  /// Whether the coordinator was connected.
  bool was_connected() {
    const std::lock_guard lock(mutex_);
    return was_connected_;
  }
  /// Why the call has ended.
  grpc::Status finish() {
    if (std::exchange(is_held_, false)) RemoveHold();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_; });
    return status_;
  }
};
}  // namespace detail

/// Executes tasks until the coordinator is destroyed. An error that a task throws is thrown in the chief.
///     run_tasks(tf_config()(), {}, train_steps{&model}, evaluate{&model});
/// Throws communication_error if the chief does not answer or is lost, and strata::error if it belongs to another run or this
/// process is not a worker.
template <remote_task... Tasks>
void run_tasks(const cluster& members, const run_tasks_options& options, Tasks&&... tasks) {
  const cluster_task chief = members.task_of_rank(0);
  const auto& address = members.address(chief);
  if (!address) throw_error({"run_tasks: the address of ", to_string(chief), " is unknown"});
  const std::string where = detail::text_of({to_string(chief), " at ", to_string(*address)});
  const wire::sender self{.run = members.run_id(), .generation = members.generation(), .rank = members.rank()};
  detail::server_connection connection(*address, options.control, detail::largest_task + (4 << 10));

  const auto execute = [&](const grpc::ByteBuffer& message) {
    using detail::task_outcome, detail::task_result;
    task_result result{task_outcome::failed, "this worker has no such task"};
    try {
      const auto call = wire::envelope(message).body<detail::task_call>();
      const auto attempt = [&]<class Task>(Task& task) {
        if (call.name != Task::name) return;
        const typename Task::result value = task(detail::unpacked<typename Task::argument>(call.argument, call.name));
        result = {task_outcome::done, detail::packed(value)};
      };
      (attempt(tasks), ...);
    } catch (const communication_error& e) {
      result = {task_outcome::disconnected, e.what()};
    } catch (const std::exception& e) {
      result = {task_outcome::failed, e.what()};
    }
    if (result.bytes.size() <= detail::largest_task) return result;
    return task_result{task_outcome::failed,
                       detail::text_of({"a result of ", result.bytes.size(), " bytes; the limit is ", detail::largest_task})};
  };

  bool was_there = false;
  std::optional<detail::waiting_notice> notice(std::in_place, options.control.on_waiting, options.start_timeout);
  for (;;) {
    const std::string what = "run_tasks waits for " + where;
    auto [stub, status] = connection.open(std::chrono::steady_clock::now() + notice->left());
    bool was_connected = false;
    if (stub) {
      detail::task_session session(*stub, self, *notice, what);
      while (const std::optional<grpc::ByteBuffer> task = session.next()) session.answer(execute(*task));
      status = session.finish();
      if (status.ok()) return;
      was_connected = session.was_connected();
      connection.drop(stub);
    } else {
      notice->tell(detail::with_reason(what, status));
    }
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) throw_error({"run_tasks: ", where, " schedules no tasks"});
    if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION)
      throw_error({"run_tasks: ", where, ": ", status.error_message()});
    if (was_connected)
      was_there = true, notice.emplace(options.control.on_waiting, options.retry_for);
    else if (notice->left() == std::chrono::milliseconds(0))
      throw communication_error(
          detail::text_of({"run_tasks: ", where, was_there ? " is gone: " : " does not answer: ", status.error_message()}));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace strata
