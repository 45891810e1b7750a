// The executor of a worker of parameter servers: it pulls the weights once, then computes and pushes one gradient per batch.
#pragma once
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <strata/base/text.hpp>
#include <strata/parameter_server/batch_gradient.hpp>
#include <strata/parameter_server/parameter_rows.hpp>
#include <strata/parameter_server/parameter_shards.hpp>
#include <strata/parameter_server/parameter_store.hpp>
#include <strata/program/counted_optimizer.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/initialize.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

namespace core {
// The parts of the compile error for a network that parameter servers cannot train. Never defined.
template <class Where, class Layer, class Why>
struct not_for_parameter_servers;
}  // namespace core

namespace reasons {
inline constexpr reason no_worker_sees_the_whole_batch_use_mirrored_or_multi_worker_mirrored{
    "workers of a parameter server exchange no statistics: use mirrored or multi_worker_mirrored, or layer_norm"};
}  // namespace reasons

namespace detail {
/// The first node that needs statistics of the whole batch while it trains; -1: none.
template <int N>
constexpr int first_whole_batch_node(const tape<N>& t) {
  for (int i = 1; i < N; ++i)
    if (t.nodes[i].operation->traits.whole_batch) return i;
  return -1;
}

template <class Items, int Node = first_whole_batch_node(tape_of<Items>)>
struct parameter_server_verdict {
  using type = not_for_parameter_servers<at_node<Node>, by_layer<typename at_t<Node, node_types_of<Items>>::layer>,
                                         because<reasons::no_worker_sees_the_whole_batch_use_mirrored_or_multi_worker_mirrored>>;
};
template <class Items>
struct parameter_server_verdict<Items, -1> {
  using type = no_complaint;
};
}  // namespace detail

namespace core {
/// The partial gradients of one step, for the connection to the servers.
template <class T>
struct pushed_gradient {
  std::shared_ptr<const arena<T>> sums;  // partial gradient k begins at element k * `stride`
  int parts = 1;
  long stride = 0;
  std::int64_t step = 0;
  double learning_rate = 0;
  int samples = 0, leaves = 1;
  std::vector<double> metric_sums{};      // of this worker's leaves, in a synchronous step
  std::span<const std::uint32_t> rows{};  // of tables that have a gradient; in ascending order, each once
};

/// A worker's connection to its servers.
///   `rank()`, `size()`, `is_synchronous()`
///   `communicating()`, `waiting()`  seconds so far, in handing messages over and in waiting for answers
///   `assign(weights, initial)`  weights for all shards
///   `pull(weights, step)`       waits for the first weights; returns how many updates the servers have made. In a synchronous
///                               training it throws strata_error if a shard is not at `step`, that of this worker
///   `pull_rows(rows, weights)`  rows of all tables, in ascending order, each once; not before the first pull
///   `push(gradient, weights)`   returns when this worker may go on, as pull does, but without tables; gradient.metric_sums
///                               become those of all leaves
///   `announce_error(what)`      see process_group; workers that wait for this one get the text
template <class C, class T>
concept parameter_connection =
    std::move_constructible<C> && requires(C c, T* weights, const T* assigned, pushed_gradient<T>& gradient,
                                           std::span<const std::uint32_t> rows, const std::string& what) {
      { c.rank() } -> std::same_as<int>;
      { c.size() } -> std::same_as<int>;
      { c.is_synchronous() } -> std::same_as<bool>;
      { c.communicating() } -> std::same_as<double>;
      { c.waiting() } -> std::same_as<double>;
      c.assign(assigned, true);
      { c.pull(weights, std::int64_t(0)) } -> std::same_as<long>;
      c.pull_rows(rows, weights);
      { c.push(gradient, weights) } -> std::same_as<long>;
      c.announce_error(what);
    };

/// `Connection<T>` is a parameter_connection.
template <class Program, template <class> class Connection, class Backend = default_backend>
class parameter_executor : detail::compiled<Program, Backend>,
                           public executor_defaults,
                           public counted_optimizer<typename Program::optimizer> {
  using counted = counted_optimizer<typename Program::optimizer>;
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  static constexpr const auto& layout = layout_of_program<Program>;
  static_assert(detail::diagnosed<typename detail::parameter_server_verdict<typename Program::items>::type>[0]);
  using connection = Connection<T>;
  static_assert(parameter_connection<connection, T>);
  using computation = batch_gradient<Program, Backend>;
  static constexpr bool has_tables = travelling_tables<Program>::count > 0;

  /// Workers have no agreements: each is a group of its own. Its errors go to the servers, which pass them to waiting workers.
  class group_of_worker : public solo_group {
    std::optional<connection>& servers_;

   public:
    group_of_worker(bool chief, std::optional<connection>& servers) : solo_group(chief), servers_(servers) {}
    void announce_error(const std::string& what) {
      if (servers_) servers_->announce_error(what);
    }
  };

  philox seed_;
  group_of_worker group_;
  std::function<void()> serve_;  // empty in a worker
  bool has_served_ = false;
  // The weights are a copy of those of the servers, which is refreshed when they are read.
  mutable std::optional<connection> servers_;  // empty in a process that serves
  mutable computation local_;
  mutable bool is_complete_ = true;  // otherwise tables have old rows
  std::shared_ptr<arena<T>> gradient_;
  std::vector<std::uint32_t> rows_;  // that the batch reads of tables
  mutable bool connected_ = false;   // it has pulled weights
  bool assigns_ = false;
  std::int64_t steps_ = 0;  // of this worker; `step()` counts the updates of the servers, as of the weights at hand

 public:
  using backend = Backend;
  static constexpr executor_traits traits{.shares_data = true};

  /// Throws strata_error for global_clipnorm: no server has the whole gradient.
  parameter_executor(optimizer_type o, std::uint64_t seed, connection servers, typename computation::options options = {})
      : counted(std::move(o)),
        seed_{seed},
        group_(servers.rank() == 0, servers_),
        servers_(std::move(servers)),
        local_(options, servers_->is_synchronous() ? servers_->size() : 0) {
    check(optimizer());
    // Workers that compute different batches use different random streams.
    if (!servers_->is_synchronous() && servers_->rank() > 0) seed_ = seed_.fork(std::uint64_t(servers_->rank()));
    initialize_parameters(layout, local_.parameters(), seed);
    local_.parameters_changed();
  }
  /// The executor of a process that keeps parameters: `serve` returns when the training is over.
  parameter_executor(optimizer_type o, std::function<void()> serve)
      : counted(std::move(o)), seed_{0}, group_(false, servers_), serve_(std::move(serve)), local_({.threads = 1}, 0) {}

  parameter_executor(const parameter_executor&) = delete;
  parameter_executor& operator=(const parameter_executor&) = delete;

  static void check(const optimizer_type& o) {
    if (o.global_clipnorm > 0)
      throw_error({"parameter_server: ", optimizer_type::name,
                   " clips by the norm of all parameters, but each server has a part of them: use clipnorm or clipvalue"});
  }

  /// All weights. After the next step, tables have old rows.
  std::span<T> parameters() {
    complete();
    return local_.parameters();
  }
  std::span<const T> parameters() const {
    complete();
    return local_.parameters();
  }
  /// The program has set weights: all workers get them from the next step of the chief on.
  void parameters_changed() {
    local_.parameters_changed();
    assigns_ = true;
  }
  using counted::optimizer;
  /// The updates of the servers, as of the weights at hand; and the rate of the next train_step. Before its first step, a worker
  /// of an asynchronous training other than the chief pulls the weights for this, for which it may have to wait: others may have
  /// trained for long.
  long step() const {
    join();
    return counted::step();
  }
  double learning_rate() const {
    join();
    return counted::learning_rate();
  }
  /// Sets the steps that this worker has made so far. A synchronous training that continues from snapshots of its servers begins
  /// at their step. Throws strata_error if this worker has made more: servers identify its pushes by step and would drop
  /// them.
  void set_step(long step) {
    if (step < steps_) throw_error({"set_step(", step, "): this worker has made ", steps_, " steps already"});
    counted::set_step(step);
    steps_ = step;
  }
  int threads() const { return local_.threads(); }
  void observe(kernel_observer* observer) { local_.observe(observer); }
  group_of_worker& group() { return group_; }
  const group_of_worker& group() const { return group_; }
  /// Workers of a synchronous training read the same batches, others each their own.
  data_share share_of_data() const {
    if (servers().is_synchronous()) return {};
    return {std::size_t(servers().rank()), std::size_t(servers().size())};
  }
  /// In a process that keeps parameters: returns true when the training is over, and later at once. In a worker: returns false at
  /// once.
  bool serve() {
    if (!serve_) return false;
    if (!has_served_) serve_();
    has_served_ = true;  // a second fit of the same program is over, too
    return true;
  }
  /// Seconds so far of sending messages to servers, and of waiting for their answers.
  double communicating() const { return servers().communicating(); }
  double waiting() const { return servers().waiting(); }

  /// Before the first training step, this worker gets the servers' weights, and with them the number of updates so far.
  void prepare(int batch, purpose why) {
    if (why == purpose::training) catch_up();
    servers();  // or throws
    local_.prepare(batch, why);
  }

  metric_sums<Program> train_step(const samples<T>& batch) {
    catch_up();
    const int rank = servers().is_synchronous() ? servers().rank() : 0;
    pull_rows_of(batch, rank);
    pushed_gradient<T> out;
    out.parts = local_.parts(batch.count, rank);
    out.stride = layout.trainable;
    const std::size_t size = std::size_t(out.parts) * std::size_t(layout.trainable);
    if (!gradient_ || gradient_->size() < size) gradient_ = std::make_shared<arena<T>>(size);
    local_.compute(random(), batch, rank, gradient_->data());
    if (!servers().is_synchronous()) {
      const metric_sums<Program> mine = local_.sum_metrics();
      if (!std::isfinite(mine[0].mean())) return mine;  // the trainer reports it; the servers do not get the gradient
    }
    out.sums = gradient_;
    out.rows = rows_;
    out.step = steps_;
    out.learning_rate = this->learning_rate();
    out.samples = batch.count;
    out.leaves = local_.leaves();
    if (servers().is_synchronous()) {
      const leaf_range own = share_of(out.leaves, rank, servers().size());
      for (int l = own.begin; l < own.end; ++l)
        out.metric_sums.insert(out.metric_sums.end(), local_.metric_sums_of(l),
                               local_.metric_sums_of(l) + computation::metric_sums_width);
    }
    is_complete_ = !has_tables;
    counted::set_step(servers().push(out, weights()));
    if (servers().is_synchronous())
      for (int l = 0; l < out.leaves; ++l)
        std::copy_n(out.metric_sums.data() + std::size_t(l) * computation::metric_sums_width, computation::metric_sums_width,
                    local_.metric_sums_of(l));
    local_.parameters_changed();
    ++steps_;
    return local_.sum_metrics();
  }

  /// End of an epoch: the newest weights.
  metric_sums<Program> finish() {
    if (connected_ && !servers().is_synchronous()) pull();
    complete();
    return {};
  }

  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    complete();
    return local_.evaluate(random(), batch);
  }
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    complete();
    local_.predict(random(), batch, out);
  }

 private:
  T* weights() const { return local_.parameters().data(); }
  philox random() const { return seed_.fork(std::uint64_t(steps_) + (1ull << 32)); }

  connection& servers() const {
    if (!servers_) throw_error("this process keeps parameters for the workers: all that its trainer can do is fit() or serve()");
    return *servers_;
  }

  /// Pulls all weights, and the number of updates of the servers.
  void pull() const { this->refresh_step(pull_weights()); }
  long pull_weights() const {
    const long updates = servers().pull(weights(), steps_);
    local_.parameters_changed();
    is_complete_ = connected_ = true;
    return updates;
  }
  void complete() const {
    servers();  // or throws
    if (!is_complete_) pull();
  }
  /// The chief cannot pull before it has assigned weights; workers of a synchronous training count their steps themselves.
  void join() const {
    if (!connected_ && servers_ && !servers_->is_synchronous() && !group_.is_chief()) pull();
  }
  /// Pulls the rows of tables that this worker's part of a batch reads.
  void pull_rows_of([[maybe_unused]] const samples<T>& batch, [[maybe_unused]] int rank) {
    if constexpr (has_tables) {
      static constexpr const end_sizes& ends = ends_of_program<Program>;
      const row_range own = local_.own_samples(batch.count, rank);
      const samples<T> mine = batch.rows(own.begin, own.end - own.begin, ends);
      rows_.clear();
      for (const row_table& table : travelling_tables<Program>::value) {
        const int k = table.names.input;
        for_each_row_name(table, mine.inputs[k], ends.inputs[k], {0, mine.count},
                          [&](T row, long, long) { rows_.push_back(std::uint32_t(row)); });
      }
      detail::keep_each_once(rows_);
      if (is_complete_) return;
      servers().pull_rows(rows_, weights());
      local_.parameters_changed();
    }
  }

  /// Before a step: assigns weights that the program has set, and pulls the weights once. Weights that a worker other than the
  /// chief has set are overwritten by those of the servers; the step, and with it the reported rate, stays.
  void catch_up() {
    if (connected_ && !assigns_) return;
    if (group_.is_chief()) servers().assign(weights(), !connected_);
    if (!connected_)
      pull();
    else if (!group_.is_chief() && !servers().is_synchronous())
      pull_weights();
    assigns_ = false;
  }
};
}  // namespace core

}  // namespace strata
