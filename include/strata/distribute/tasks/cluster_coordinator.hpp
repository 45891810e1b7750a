// cluster_coordinator: the chief schedules tasks, and the next idle worker executes each. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/cluster.hpp>
#include <strata/distribute/control/control_channel.hpp>
#include <strata/distribute/control/guarded_server.hpp>
#include <strata/distribute/control/waiting_notice.hpp>
#include <strata/distribute/tasks/remote_task.hpp>
#include <strata/distribute/tasks/task_messages.hpp>
#include <strata/distribute/wire/envelope.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

struct cluster_coordinator_options {
  control_options control{};
  std::chrono::milliseconds worker_timeout = std::chrono::minutes(5);  // how long join() waits while no worker is connected
  int attempts = 10;                                                   // a task fails when it has lost that many workers
};

/// Used by the chief while the workers are in `run_tasks`. `schedule` never waits; a task goes to the next idle worker. If that
/// worker is lost, another one gets the task. Workers may connect at any time. When a task throws, the tasks that have not begun
/// are cancelled, and join() or the next schedule() throws the same error.
///     cluster_coordinator coordinator(tf_config()());
///     for (int i = 0; i < 100; ++i) losses.push_back(coordinator.schedule<train_steps>(i));
///     coordinator.join();
/// Not thread-safe. https://www.tensorflow.org/api_docs/python/tf/distribute/coordinator/ClusterCoordinator
class cluster_coordinator {
  using clock = std::chrono::steady_clock;

 public:
  /// Listens at the chief's address. Throws strata::error if it cannot, if the address is open to other machines without a proof,
  /// and in a process that is not the chief.
  explicit cluster_coordinator(const cluster& members, cluster_coordinator_options options = {})
      : options_(std::move(options)),
        service_(members, options_.attempts),
        server_(address_in(members), "the coordinator", service_, options_.control,
                {.largest_message = detail::largest_task + (4 << 10),
                 .streams = 4,
                 .members = members.size() - 1,
                 .ping_after = detail::ping_after,
                 .ping_timeout = detail::ping_timeout},
                service_.who_calls()) {}
  /// The workers return from run_tasks. Tasks that have not ended are cancelled.
  ~cluster_coordinator() { service_.close(); }
  cluster_coordinator(const cluster_coordinator&) = delete;
  cluster_coordinator& operator=(const cluster_coordinator&) = delete;

  /// Throws the error of an earlier task.
  template <remote_task Task>
  remote_value<Task> schedule(const typename Task::argument& argument = {}) {
    const std::string bytes = detail::packed(argument);
    if (bytes.size() > detail::largest_task)
      throw_error({Task::name, ": an argument of ", bytes.size(), " bytes; the limit is ", detail::largest_task});
    return remote_value<Task>(service_.schedule(std::string(Task::name), bytes));
  }
  /// Returns when all tasks are done. Throws the error of the first task that failed, and communication_error if tasks are left
  /// but no worker was connected for `worker_timeout`.
  void join() { service_.join(options_.worker_timeout, options_.control.on_waiting); }
  /// Whether no task is scheduled or under way.
  bool done() { return service_.is_done(); }

 private:
  static endpoint address_in(const cluster& members) {
    const cluster_task chief = members.task_of_rank(0);
    if (members.task().type != chief.type || members.task().index != chief.index)
      throw_error({"cluster_coordinator: this process is ", to_string(members.task()), ", but tasks are scheduled by ",
                   to_string(chief)});
    const auto& address = members.address(chief);
    if (!address) throw_error({"cluster_coordinator: the address of ", to_string(chief), " is unknown"});
    return *address;
  }

  struct scheduled {
    detail::task_call call;
    std::shared_ptr<detail::remote_outcome> outcome = std::make_shared<detail::remote_outcome>();
    int attempts = 0;
  };

  class service final : public grpc::CallbackGenericService {
    /// One worker while its call is open. It introduces itself; then it sends one result per task.
    class worker final : public grpc::ServerGenericBidiReactor {
     public:
      worker(service& owner, grpc::GenericCallbackServerContext& context) : owner_(owner), context_(context) {
        owner_.callers_->begins(context_);
        if (context.method() == detail::tasks_method)
          StartRead(&incoming_);
        else
          end({grpc::StatusCode::UNIMPLEMENTED, "the coordinator has no such method"});
      }
      void OnReadDone(bool ok) override {
        owner_.callers_->has_spoken(context_);
        if (ok) owner_.heard(*this, incoming_);
      }
      void OnWriteDone(bool) override { owner_.sent(*this); }
      void OnCancel() override { owner_.cancelled(*this); }
      void OnDone() override {
        owner_.callers_->has_spoken(context_);
        owner_.lost(*this);
        delete this;
      }

      // All under the owner's lock, so that nothing follows the end.
      void send(const scheduled& task) {
        outgoing_ = wire::sealed(task.call);
        is_sending = true;
        StartWrite(&outgoing_);
      }
      void listen() {
        if (!has_ended) StartRead(&incoming_);
      }
      void end(const grpc::Status& status) {
        if (!std::exchange(has_ended, true)) Finish(status);
      }

      std::string name;  // empty until it has introduced itself
      std::shared_ptr<scheduled> at_work;
      bool is_sending = false, has_ended = false;

      void is_member() const { owner_.callers_->is_member(context_); }

     private:
      service& owner_;
      grpc::GenericCallbackServerContext& context_;
      grpc::ByteBuffer incoming_, outgoing_;
    };

   public:
    service(const cluster& members, int attempts) : attempts_(std::max(1, attempts)), members_(members) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      return new worker(*this, *context);
    }

    const std::shared_ptr<detail::callers>& who_calls() const { return callers_; }

    std::shared_ptr<detail::remote_outcome> schedule(std::string name, std::string bytes) {
      auto task = std::make_shared<scheduled>(scheduled{{std::move(name), std::move(bytes)}});
      const std::lock_guard lock(mutex_);
      throw_problem();
      queue_.push_back(task);
      hand_out();
      return task->outcome;
    }
    void join(std::chrono::milliseconds worker_timeout, const detail::waiting_notice::listener& on_waiting) {
      std::unique_lock lock(mutex_);
      std::optional<detail::waiting_notice> without_workers;  // since when no worker is connected
      while (!is_idle()) {
        if (!idle_.empty() || under_way_ > 0)
          without_workers.reset();
        else if (!without_workers)
          without_workers.emplace(on_waiting, worker_timeout);
        const std::size_t left = queue_.size();
        if (without_workers && without_workers->left() == std::chrono::milliseconds(0)) {
          cancel("no worker was connected");
          throw communication_error(detail::text_of({"no worker was connected for ", worker_timeout.count(), " ms, but ", left,
                                                     left == 1 ? " task is left" : " tasks are left"}));
        }
        changed_.wait_for(lock, std::chrono::milliseconds(100));
        if (!without_workers) continue;
        lock.unlock();  // the listener may call back
        without_workers->tell(
            detail::text_of({"the chief waits for a worker to execute ", left, left == 1 ? " task" : " tasks"}));
        lock.lock();
      }
      throw_problem();
    }
    bool is_done() {
      const std::lock_guard lock(mutex_);
      return is_idle();
    }
    void close() {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      cancel("the coordinator has ended");
      for (worker* w : std::vector(workers_)) w->end(grpc::Status::OK);
    }

    void heard(worker& from, const grpc::ByteBuffer& message) {
      const std::lock_guard lock(mutex_);
      if (closed_) return from.end(grpc::Status::OK);
      try {
        const wire::envelope received(message);
        if (from.name.empty())
          admit(from, received.from());
        else if (from.at_work)
          finish(from, received.body<detail::task_result>());
        else
          from.end({grpc::StatusCode::INVALID_ARGUMENT, "a result without a task"});
      } catch (const wire::malformed_message& e) {
        from.end({grpc::StatusCode::INVALID_ARGUMENT, e.what()});
      }
      if (from.has_ended) return;
      from.listen();
      give_next(from);
    }
    void sent(worker& to) {
      const std::lock_guard lock(mutex_);
      to.is_sending = false;
      give_next(to);
    }
    void cancelled(worker& w) {
      const std::lock_guard lock(mutex_);
      w.end(grpc::Status::CANCELLED);
    }
    void lost(worker& w) {
      const std::lock_guard lock(mutex_);
      std::erase(workers_, &w);
      std::erase(idle_, &w);
      if (const std::shared_ptr<scheduled> task = std::exchange(w.at_work, nullptr)) {
        --under_way_;
        if (closed_ || problem_)
          task->outcome->set({}, std::make_exception_ptr(error({task->call.name, " has been cancelled: ", w.name, " is gone"})));
        else if (++task->attempts >= attempts_)
          fail(*task, std::make_exception_ptr(
                          communication_error(detail::text_of({task->call.name, " has been given to ", task->attempts,
                                                               " workers, and all of them are gone; the last was ", w.name}))));
        else
          queue_.push_front(task);
      }
      hand_out();
    }

   private:
    void admit(worker& w, const wire::sender& from) {
      const bool is_ours = from.run == members_.run_id() && from.generation == members_.generation();
      if (!is_ours || from.rank < 1 || from.rank >= members_.size())
        return w.end({grpc::StatusCode::FAILED_PRECONDITION,
                      "this coordinator belongs to another run: the clusters differ, or STRATA_RUN_ID does"});
      w.name = to_string(members_.task_of_rank(from.rank));
      workers_.push_back(&w);
      w.is_member();
    }
    void finish(worker& w, detail::task_result result) {
      const std::shared_ptr<scheduled> task = std::exchange(w.at_work, nullptr);
      --under_way_;
      const std::string why = detail::text_of({w.name, ": ", task->call.name, ": ", result.bytes});
      if (result.outcome == detail::task_outcome::done)
        task->outcome->set(std::move(result.bytes), nullptr);
      else if (result.outcome == detail::task_outcome::disconnected)
        fail(*task, std::make_exception_ptr(communication_error(why)));
      else
        fail(*task, std::make_exception_ptr(error(why)));
    }
    /// A result can arrive before gRPC has reported that the task was sent; the next task has to wait for both.
    void give_next(worker& w) {
      if (!w.at_work && !w.is_sending && !w.name.empty()) idle_.push_back(&w);
      hand_out();
    }
    bool is_idle() const { return queue_.empty() && under_way_ == 0; }
    void hand_out() {
      while (!queue_.empty() && !idle_.empty()) {
        worker& w = *idle_.front();
        idle_.pop_front();
        if (w.has_ended) continue;
        w.at_work = queue_.front();
        queue_.pop_front();
        ++under_way_;
        w.send(*w.at_work);
      }
      changed_.notify_all();
    }
    void fail(scheduled& task, const std::exception_ptr& why) {
      task.outcome->set({}, why);
      if (!problem_) problem_ = why;
      cancel("another task has failed");
    }
    void cancel(const std::string& why) {
      for (const auto& task : std::exchange(queue_, {}))
        task->outcome->set({}, std::make_exception_ptr(error({task->call.name, " has been cancelled: ", why})));
    }
    void throw_problem() {
      if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
    }

    const int attempts_;
    const cluster members_;
    const std::shared_ptr<detail::callers> callers_ = std::make_shared<detail::callers>();
    std::recursive_mutex mutex_;  // gRPC may call back at once
    std::condition_variable_any changed_;
    std::deque<std::shared_ptr<scheduled>> queue_;
    std::vector<worker*> workers_;
    std::deque<worker*> idle_;
    int under_way_ = 0;
    std::exception_ptr problem_;
    bool closed_ = false;
  };

  cluster_coordinator_options options_;
  service service_;
  detail::guarded_server server_;
};

}  // namespace strata
