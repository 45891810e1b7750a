// cluster_coordinator: the chief schedules tasks, and whichever worker is free executes them. Needs gRPC.
// needs: grpc
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/cluster.hpp>
#include <strata/distribute/control/guarded_server.hpp>
#include <strata/distribute/parameter_server/parameter_message.hpp>
#include <strata/distribute/tasks/remote_task.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

struct cluster_coordinator_options {
  control_options control{};
  std::chrono::milliseconds worker_timeout = std::chrono::minutes(5);  // how long join() waits while no worker is there
  int attempts = 10;                                                   // so many workers may be lost over one task
};

namespace detail {
inline constexpr const char* tasks_method = "/strata.Tasks/Run";
inline constexpr std::size_t largest_task = 1 << 20;

/// What a worker says first: its task, and its run.
inline std::string greeting_of(const cluster& members, const cluster_task& task) {
  return to_string(task) + '\n' + members.run_id() + ' ' + std::to_string(members.generation());
}
/// A name and bytes in one text.
inline std::string joined(std::string_view name, std::string_view bytes) {
  return std::string(name) + '\n' + std::string(bytes);
}
inline std::pair<std::string, std::string> split(const std::string& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}
}  // namespace detail

/// In the chief, while workers are in `run_tasks`. `schedule` never waits; a task goes to the next worker that is free. If that
/// worker is lost, another one gets the task; workers that come, or come back, take part. When a task throws, all that are not
/// under way are cancelled, and join() or the next schedule() throws the same.
///     cluster_coordinator coordinator(tf_config()());
///     for (int i = 0; i < 100; ++i) losses.push_back(coordinator.schedule<train_steps>(i));
///     coordinator.join();
/// https://www.tensorflow.org/api_docs/python/tf/distribute/coordinator/ClusterCoordinator
/// Not for several threads at once.
class cluster_coordinator {
  using clock = std::chrono::steady_clock;

 public:
  /// Listens at the chief's own address. Throws strata::error if nobody can listen there, if it is open to other machines
  /// without TLS, and in a process that is not the chief.
  explicit cluster_coordinator(const cluster& members, cluster_coordinator_options options = {})
      : options_(std::move(options)),
        service_(members, options_.attempts),
        server_(address_in(members), "the coordinator", service_, options_.control,
                {.largest_message = detail::largest_task,
                 .streams = 4,
                 .members = members.size() - 1,
                 .ping_after = detail::ping_after,
                 .ping_timeout = detail::ping_timeout}) {}
  /// Tells the workers that it is over. Tasks that nobody has joined are cancelled.
  ~cluster_coordinator() { service_.close(); }
  cluster_coordinator(const cluster_coordinator&) = delete;
  cluster_coordinator& operator=(const cluster_coordinator&) = delete;

  /// Throws the error of an earlier task.
  template <remote_task Task>
  remote_value<Task> schedule(const typename Task::argument& argument = {}) {
    const std::string bytes = detail::packed(argument);
    if (bytes.size() + 1024 > detail::largest_task)
      throw error(std::string(Task::name) + ": an argument of " + std::to_string(bytes.size()) +
                  " bytes is too large to be sent");
    return remote_value<Task>(service_.schedule(std::string(Task::name), bytes));
  }
  /// Returns when all tasks are done. Throws the error of the first that failed, and communication_error while there is work
  /// but no worker for `worker_timeout`.
  void join() { service_.join(options_.worker_timeout); }
  /// Whether nothing is scheduled or under way.
  bool done() { return service_.is_done(); }

 private:
  static endpoint address_in(const cluster& members) {
    const cluster_task chief = members.task_of_rank(0);
    if (members.task().type != chief.type || members.task().index != chief.index)
      throw error("cluster_coordinator: this process is " + to_string(members.task()) + ", but tasks are scheduled by " +
                  to_string(chief));
    const auto& address = members.address(chief);
    if (!address) throw error("cluster_coordinator: nobody knows the address of " + to_string(chief));
    return *address;
  }

  struct scheduled {
    std::string name, bytes;
    std::shared_ptr<detail::remote_outcome> outcome = std::make_shared<detail::remote_outcome>();
    int attempts = 0;
  };

  class service final : public grpc::CallbackGenericService {
    /// One worker, for as long as its call is open: a greeting comes in, then a result for each task that goes out.
    class worker final : public grpc::ServerGenericBidiReactor {
     public:
      explicit worker(service& owner, const std::string& method) : owner_(owner) {
        if (method == detail::tasks_method)
          StartRead(&incoming_);
        else
          end({grpc::StatusCode::UNIMPLEMENTED, "unknown method"});
      }
      void OnReadDone(bool ok) override {
        if (ok) owner_.heard(*this, detail::text_of(incoming_));
      }
      void OnWriteDone(bool) override { owner_.sent(*this); }
      void OnCancel() override { owner_.cancelled(*this); }
      void OnDone() override {
        owner_.lost(*this);
        delete this;
      }

      // All under the owner's lock: nothing may follow the end.
      void send(const scheduled& task) {
        outgoing_ = detail::buffer_of(detail::joined(task.name, task.bytes));
        is_sending = true;
        StartWrite(&outgoing_);
      }
      void listen() {
        if (!has_ended) StartRead(&incoming_);
      }
      void end(const grpc::Status& status) {
        if (!std::exchange(has_ended, true)) Finish(status);
      }

      std::string name;  // when it has said it
      std::shared_ptr<scheduled> at_work;
      bool is_sending = false, has_ended = false;

     private:
      service& owner_;
      grpc::ByteBuffer incoming_, outgoing_;
    };

   public:
    service(const cluster& members, int attempts) : attempts_(std::max(1, attempts)) {
      for (int r = 0; r < members.size(); ++r) {
        const cluster_task task = members.task_of_rank(r);
        if (r > 0) greetings_[detail::greeting_of(members, task)] = to_string(task);
      }
    }
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      return new worker(*this, context->method());
    }

    std::shared_ptr<detail::remote_outcome> schedule(std::string name, std::string bytes) {
      auto task = std::make_shared<scheduled>(scheduled{std::move(name), std::move(bytes)});
      const std::lock_guard lock(mutex_);
      throw_problem();
      queue_.push_back(task);
      hand_out();
      return task->outcome;
    }
    void join(std::chrono::milliseconds worker_timeout) {
      std::unique_lock lock(mutex_);
      auto last_seen = clock::now();
      while (!is_idle()) {
        if (!idle_.empty() || under_way_ > 0) last_seen = clock::now();
        if (clock::now() - last_seen > worker_timeout) {
          const std::string left = std::to_string(queue_.size());
          cancel("no worker came for it");
          throw communication_error("no worker has been there for " + std::to_string(worker_timeout.count()) + " ms, but " +
                                    left + " tasks are left");
        }
        changed_.wait_for(lock, std::chrono::milliseconds(100));
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

    void heard(worker& from, const std::string& text) {
      const std::lock_guard lock(mutex_);
      if (closed_) return from.end(grpc::Status::OK);
      if (from.name.empty()) {
        const auto found = greetings_.find(text);
        if (found == greetings_.end())
          return from.end({grpc::StatusCode::FAILED_PRECONDITION,
                           "this coordinator belongs to another run: the clusters differ, or STRATA_RUN_ID does"});
        from.name = found->second;
        workers_.push_back(&from);
      } else if (!from.at_work) {
        return from.end({grpc::StatusCode::INVALID_ARGUMENT, "a result of nothing"});
      } else {
        const auto [kind, bytes] = detail::split(text);
        const std::shared_ptr<scheduled> task = std::exchange(from.at_work, nullptr);
        --under_way_;
        const std::string words = from.name + ": " + task->name + ": " + bytes;
        if (kind == "done")
          task->outcome->set(bytes, nullptr);
        else if (kind == "lost")
          fail(*task, std::make_exception_ptr(communication_error(words)));
        else
          fail(*task, std::make_exception_ptr(error(words)));
      }
      from.listen();
      welcome(from);
    }
    void sent(worker& to) {
      const std::lock_guard lock(mutex_);
      to.is_sending = false;
      welcome(to);
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
          task->outcome->set({}, std::make_exception_ptr(error(task->name + " has been cancelled: " + w.name + " is gone")));
        else if (++task->attempts >= attempts_)
          fail(*task,
               std::make_exception_ptr(communication_error(task->name + " has been given to " + std::to_string(task->attempts) +
                                                           " workers, and all of them are gone; the last was " + w.name)));
        else
          queue_.push_front(task);
      }
      hand_out();
    }

   private:
    /// Its next task, if it may have one: a result can arrive before gRPC has said that the task was sent.
    void welcome(worker& w) {
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
        task->outcome->set({}, std::make_exception_ptr(error(task->name + " has been cancelled: " + why)));
    }
    void throw_problem() {
      if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
    }

    const int attempts_;
    std::map<std::string, std::string> greetings_;  // of the workers, and their names
    std::recursive_mutex mutex_;                    // gRPC may call back at once
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
