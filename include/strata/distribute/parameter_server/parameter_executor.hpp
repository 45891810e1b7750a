// The executor of a worker whose parameters are kept by servers: pull once, then compute and push, batch after batch.
#pragma once
#include <cmath>
#include <memory>
#include <span>
#include <strata/distribute/leaves/batch_gradient.hpp>
#include <strata/distribute/parameter_server/parameter_rows.hpp>
#include <strata/distribute/parameter_server/parameter_shards.hpp>
#include <strata/distribute/parameter_server/parameter_store.hpp>
#include <strata/program/initialize.hpp>
#include <utility>
#include <vector>

namespace strata {

// The words of the sentence about a network that no parameter server can train. Never defined.
template <class Where, class Layer, class Why>
struct not_for_parameter_servers;

inline constexpr reason no_worker_sees_the_whole_batch_use_mirrored_or_multi_worker_mirrored{
    "workers of a parameter server exchange no statistics: use mirrored or multi_worker_mirrored, or layer_norm"};

namespace detail {
/// The first node that needs statistics of the whole batch while it trains; -1: none.
template <int N>
constexpr int first_whole_batch_node(const tape<N>& t) {
  for (int i = 1; i < N; ++i)
    if (t.nodes[i].operation->whole_batch) return i;
  return -1;
}

template <class Items, int Node = first_whole_batch_node(tape_of<Items>)>
struct parameter_server_verdict {
  using type = not_for_parameter_servers<at_node<Node>, by_layer<typename at_t<Node, leaves_of<Items>>::layer>,
                                         because<no_worker_sees_the_whole_batch_use_mirrored_or_multi_worker_mirrored>>;
};
template <class Items>
struct parameter_server_verdict<Items, -1> {
  using type = no_complaint;
};
}  // namespace detail

/// Where the gradients of a step are, as the connection to the servers sees them.
template <class T>
struct pushed_gradient {
  std::shared_ptr<const arena<T>> sums;  // part k begins at k * `stride`
  int parts = 1;
  long stride = 0;
  std::int64_t step = 0;
  double learning_rate = 0;
  int samples = 0, leaves = 1;
  std::vector<double> tallies{};          // of this worker's leaves, in a synchronous step
  std::span<const std::uint32_t> rows{};  // of tables; the others have no gradient. In order, each once
};

/// What a worker is given to reach its servers.
///   `rank()`, `size()`, `is_synchronous()`
///   `communicating()`, `waiting()`  seconds so far, of handing messages over, and until there are answers
///   `assign(weights, initial)`  for all
///   `pull(weights)`             when there are any; returns how many updates the servers have made
///   `pull_rows(rows, weights)`  of all tables, once there are weights; rows are in order, each once
///   `push(gradient, weights)`   like pull, but for tables, when this worker may go on; gradient.tallies become those of all
///                               leaves
template <class C, class T>
concept parameter_connection = std::move_constructible<C> &&
    requires(C c, T* weights, const T* assigned, pushed_gradient<T>& gradient, std::span<const std::uint32_t> rows) {
  { c.rank() } -> std::same_as<int>;
  { c.size() } -> std::same_as<int>;
  { c.is_synchronous() } -> std::same_as<bool>;
  { c.communicating() } -> std::same_as<double>;
  { c.waiting() } -> std::same_as<double>;
  c.assign(assigned, true);
  { c.pull(weights) } -> std::same_as<long>;
  c.pull_rows(rows, weights);
  { c.push(gradient, weights) } -> std::same_as<long>;
};

/// `Connection<T>` is a parameter_connection.
template <class Program, template <class> class Connection, class Backend = cpu>
class parameter_executor : compiled<Program, Backend> {
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  static constexpr const auto& layout = layout_of_program<Program>;
  static_assert(sizeof(typename detail::parameter_server_verdict<typename Program::items>::type) > 0,
                "parameter servers cannot train a network that needs statistics of the whole batch");
  using connection = Connection<T>;
  static_assert(parameter_connection<connection, T>);
  using computation = batch_gradient<Program, Backend>;
  static constexpr bool has_tables = travelling_tables<Program>::count > 0;

  compute_options options_;
  optimizer_type optimizer_;
  philox seed_;
  connection servers_;
  computation local_;
  arena<T> weights_{std::size_t(layout.size)};
  std::shared_ptr<arena<T>> gradient_;
  std::vector<std::uint32_t> rows_;  // of tables, that the batch reads
  bool connected_ = false, assigns_ = false;
  bool is_complete_ = true;  // otherwise tables have old rows
  long step_ = 0;            // of this worker
  long updates_ = 0;         // of the servers, as of the weights at hand

 public:
  using backend = Backend;

  /// Throws strata::error for an optimizer that clips by norms: no server has a whole gradient.
  parameter_executor(optimizer_type o, std::uint64_t seed, connection servers, compute_options options = {})
      : options_(options), optimizer_(std::move(o)), seed_{seed}, servers_(std::move(servers)),
        local_(options, servers_.is_synchronous() ? servers_.size() : 0) {
    check(optimizer_);
    // Workers that compute batches of their own draw random numbers of their own.
    if (!servers_.is_synchronous() && servers_.rank() > 0) seed_ = seed_.fork(std::uint64_t(servers_.rank()));
    initialize_parameters(layout, weights_.span(), seed);
  }
  static void check(const optimizer_type& o) {
    if (o.clipnorm > 0 || o.global_clipnorm > 0)
      throw error("parameter_server: " + std::string(optimizer_type::name) +
                  " clips by a norm, which takes a whole gradient, but each server has a part: use clipvalue");
  }

  /// All of them, until the next step, after which tables have old rows.
  std::span<T> parameters() {
    complete();
    return weights_.span();
  }
  /// Weights that the program has set are those of all workers from the next step of the chief on.
  void parameters_changed() {
    local_.weights_changed();
    assigns_ = true;
  }
  optimizer_type& optimizer() { return optimizer_; }
  long step() const { return step_; }
  int threads() const { return local_.threads(); }
  bool is_chief() const { return servers_.rank() == 0; }
  /// Seconds so far that handing messages to servers has taken, and waiting for their answers.
  double communicating() const { return servers_.communicating(); }
  double waiting() const { return servers_.waiting(); }

  void prepare(int batch, purpose why) { local_.prepare(batch, why); }

  tallies<Program> train_step(samples<T> batch) {
    catch_up();
    const int rank = servers_.is_synchronous() ? servers_.rank() : 0;
    pull_rows_of(batch, rank);
    pushed_gradient<T> out;
    out.parts = local_.parts(batch.count, rank);
    out.stride = layout.trainable;
    const std::size_t size = std::size_t(out.parts) * std::size_t(layout.trainable);
    if (!gradient_ || gradient_->size() < size) gradient_ = std::make_shared<arena<T>>(size);
    local_.compute(weights_.data(), random(), batch, rank, gradient_->data());
    if (!servers_.is_synchronous()) {
      const tallies<Program> mine = local_.tally_up();
      if (!std::isfinite(mine[0].mean())) return mine;  // the trainer says what is wrong; the others need not suffer
    }
    out.sums = gradient_;
    out.rows = rows_;
    out.step = step_;
    out.learning_rate = optimizer_.learning_rate(updates_);
    out.samples = batch.count;
    out.leaves = local_.leaves();
    if (servers_.is_synchronous()) {
      const leaf_range own = share_of(out.leaves, rank, servers_.size());
      for (int l = own.begin; l < own.end; ++l)
        out.tallies.insert(out.tallies.end(), local_.tallies_of(l), local_.tallies_of(l) + computation::tally_width);
    }
    is_complete_ = !has_tables;
    updates_ = servers_.push(out, weights_.data());
    if (servers_.is_synchronous())
      for (int l = 0; l < out.leaves; ++l)
        std::copy_n(out.tallies.data() + std::size_t(l) * computation::tally_width, computation::tally_width,
                    local_.tallies_of(l));
    local_.weights_changed();
    ++step_;
    return local_.tally_up();
  }

  /// End of an epoch: the newest weights.
  tallies<Program> finish() {
    if (connected_ && !servers_.is_synchronous()) pull();
    complete();
    return {};
  }

  /// For a chief that schedules instead of training: the first time its weights go to the servers; then it gets the newest.
  void refresh() {
    catch_up();
    finish();
  }

  tallies<Program> evaluate_step(samples<T> batch) {
    complete();
    return local_.evaluate(weights_.data(), random(), batch);
  }
  void predict(samples<T> batch, T* out) {
    complete();
    local_.predict(weights_.data(), random(), batch, out);
  }

 private:
  philox random() const { return seed_.fork(std::uint64_t(step_) + (1ull << 32)); }

  void pull() {
    updates_ = servers_.pull(weights_.data());
    local_.weights_changed();
    is_complete_ = true;
  }
  void complete() {
    if (!is_complete_) pull();
  }
  /// Of tables, those that this worker's part of a batch reads.
  void pull_rows_of([[maybe_unused]] const samples<T>& batch, [[maybe_unused]] int rank) {
    if constexpr (has_tables) {
      constexpr long size = Program::network::input_shape.size();
      const row_range own = local_.own_samples(batch.count, rank);
      find_rows(std::span(batch.x + own.begin * size, batch.x + own.end * size), rows_);
      if (is_complete_) return;
      servers_.pull_rows(rows_, weights_.data());
      local_.weights_changed();
    }
  }

  /// Before a step: what the program has set goes to the servers; at first, this worker takes what is there.
  void catch_up() {
    if (connected_ && !assigns_) return;
    if (is_chief()) servers_.assign(weights_.data(), !connected_);
    if (!connected_) pull();
    connected_ = true, assigns_ = false;
  }
};

}  // namespace strata
