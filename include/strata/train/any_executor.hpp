// An executor with its type erased, so that the loops of fit and evaluate are compiled once for all programs.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <strata/base/empty.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/hash.hpp>
#include <strata/base/node_name.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/row_tables.hpp>
#include <strata/train/any_process_group.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/loss_weights.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace detail {

/// How a metric is reported.
struct reported_metric {
  const char* base_name;
  int number = 0;          // for a name used before: 1 for recall_1
  std::size_t sums = 2;    // elements of the totals that it accumulates
  std::size_t values = 0;  // elements of its result; 0: a scalar, which goes into the history
  void (*results)(std::span<const double> sums, std::span<double> values) = nullptr;  // null: the mean

  constexpr std::size_t pairs() const { return (sums + 1) / 2; }
  std::string name() const { return number > 0 ? text_of({base_name, '_', number}) : base_name; }
};

/// Whether `text` is `name` with that suffix: recall_1.
constexpr bool is_numbered(std::string_view text, std::string_view name, int number) {
  for (; number > 0 && !text.empty() && text.back() == '0' + number % 10; number /= 10) text.remove_suffix(1);
  return number == 0 && text.ends_with('_') && text.substr(0, text.size() - 1) == name;
}

/// Gives each metric a unique name, as Keras does: recall, recall_1, recall_2. A suffix that would make the name of another
/// metric is skipped.
template <std::size_t N>
constexpr std::array<reported_metric, N> with_own_names(std::array<reported_metric, N> all) {
  for (std::size_t k = 1; k < N; ++k) {
    reported_metric& m = all[k];
    const auto has_same_name = [&](std::size_t i) { return std::string_view(all[i].base_name) == m.base_name; };
    const auto is_taken = [&] {
      for (const reported_metric& other : all)
        if (is_numbered(other.base_name, m.base_name, m.number)) return true;
      return false;
    };
    for (std::size_t i = 0; i < k; ++i)
      if (has_same_name(i)) m.number = all[i].number + 1;
    while (m.number > 0 && is_taken()) ++m.number;
  }
  return all;
}

template <class M>
constexpr reported_metric report_of([[maybe_unused]] int predictions) {
  if constexpr (!adds_several<M>)
    return {.base_name = M::name};
  else if constexpr (has_result<M>)
    return {.base_name = M::name,
            .sums = std::size_t(M::sums(predictions)),
            .results = [](std::span<const double> sums, std::span<double> values) { values[0] = M::result(sums); }};
  else
    return {.base_name = M::name,
            .sums = std::size_t(M::sums(predictions)),
            .values = std::size_t(M::values(predictions)),
            .results = [](std::span<const double> sums, std::span<double> values) { M::results(sums, values); }};
}

}  // namespace detail

namespace core {
/// The members are described at the concept executor. Metric sums are a span: those of the loss, then those of each metric.
template <class T>
class any_executor {
 public:
  struct program_info {
    std::span<const detail::reported_metric> metrics;  // the first is the loss
    const end_sizes& ends;                             // sizes of a sample
    const detail::end_names& named;                    // inputs and outputs of a graph
  };

  virtual program_info about() const = 0;
  virtual any_process_group& group() = 0;
  /// Throws strata_error for a label outside the classes, and for an index that is no row of an embedding.
  virtual void check(const samples<T>& batch, row_range rows, const detail::sample_names& names) = 0;
  virtual void prepare(int batch_size, purpose) = 0;
  /// Afterwards its sums are there, unless results are pending: then its own is the last of them.
  virtual void train_step(const samples<T>& batch, std::span<metric_sum> sums) = 0;
  /// The number of results of train_step that have not been read.
  virtual long pending() const = 0;
  /// Waits for the first of them.
  virtual void read_result(std::span<metric_sum> sums) = 0;
  virtual void evaluate_step(const samples<T>& batch, std::span<metric_sum> sums) = 0;
  virtual void finish(std::span<metric_sum> sums) = 0;

  virtual void launch_together(long steps) = 0;
  virtual long step() const = 0;
  virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double rate) = 0;
  /// Hash of all parameters. 0 for a single process, or if no process holds all parameters.
  virtual double hash_of_parameters() = 0;
  virtual double communicating() const = 0;
  virtual double waiting() const = 0;

 protected:
  any_executor() = default;
  any_executor(const any_executor&) = default;
  ~any_executor() = default;
};
}  // namespace core

namespace detail {

/// "kind_accuracy": the name of a loss or a metric of one of several outputs, which have names.
template <class Node, class Named>
inline constexpr auto name_at_output = [] {
  constexpr std::string_view node = node_name<Node>, name = Named::name;
  std::array<char, node.size() + 1 + name.size() + 1> text{};
  std::copy_n(node.data(), node.size(), text.data());
  text[node.size()] = '_';
  std::copy_n(name.data(), name.size(), text.data() + node.size() + 1);
  return text;
}();
struct loss_of_output {
  static constexpr auto name = "loss";
};

/// What a step reports, in the order of the outputs of the graph.
template <class Program, class Outputs>
struct list_of_reported;
template <class Program, class Loss, class... M>
struct list_of_reported<Program, type_list<compared_output<Loss, type_list<M...>>>> {
  static constexpr int predictions() {
    if constexpr ((adds_several<M> || ...))
      return int(ends_of_program<Program>.outputs[0]);
    else
      return 0;
  }
  static constexpr std::array<reported_metric, 1 + sizeof...(M)> list() {
    return {{{.base_name = "loss"}, report_of<M>(predictions())...}};
  }
};
template <class Program, class First, class Second, class... More>
struct list_of_reported<Program, type_list<First, Second, More...>> {
  template <class Node, class... M>
  static constexpr void add([[maybe_unused]] reported_metric*& to, [[maybe_unused]] long predictions, type_list<M...>) {
    ((*to = report_of<M>(int(predictions)), (to++)->base_name = name_at_output<Node, M>.data()), ...);
  }
  template <class Node>
  static constexpr int number = index_in<Node>(typename Program::output_nodes{});
  template <class... Node>
  static constexpr auto list_of(type_list<Node...>) {
    constexpr std::size_t losses = sizeof...(Node) > 1 ? 1 + sizeof...(Node) : 1;
    std::array<reported_metric, losses + std::size_t(length(metrics_of_program<Program>{}))> all{};
    reported_metric* to = all.data();
    *to++ = {.base_name = "loss"};
    if constexpr (losses > 1) ((*to++ = {.base_name = name_at_output<Node, loss_of_output>.data()}), ...);
    (add<Node>(to, ends_of_program<Program>.outputs[number<Node>],
               typename at_t<number<Node>, typename Program::outputs>::metrics{}),
     ...);
    return all;
  }
  static constexpr auto list() { return list_of(outputs_with_loss<Program>{}); }
};

template <class Program>
struct reported_metrics {
  static constexpr auto all = with_own_names(list_of_reported<Program, typename Program::outputs>::list());
  static constexpr std::size_t sums = [] {
    std::size_t pairs = 0;
    for (const reported_metric& m : all) pairs += m.pairs();
    return pairs;
  }();
  static constexpr std::size_t numbers = [] {
    std::size_t count = 0;
    for (const reported_metric& m : all) count += m.values == 0;
    return count;
  }();
};

template <class Program, class Executor>
class erased_executor final : public any_executor<typename Program::value_type> {
  using T = typename Program::value_type;
  using group_type = std::remove_reference_t<decltype(std::declval<Executor&>().group())>;
  using sums_of_step = decltype(std::declval<Executor&>().train_step(std::declval<const samples<T>&>()));
  static constexpr bool may_be_pending = !std::is_same_v<sums_of_step, metric_sums<Program>>;

  struct result_to_read {
    sums_of_step sums;
    [[no_unique_address]] loss_weights<Program> factors;  // those of the step
  };

  Executor& executor_;
  erased_group<group_type> group_;
  [[no_unique_address]] std::conditional_t<may_be_pending, std::vector<result_to_read>, empty> results_;  // read, then pending
  std::size_t read_ = 0;
  const loss_weights<Program>& factors_;
  [[no_unique_address]] weighted_batch<Program> weighted_;

  void copy(const metric_sums<Program>& of_step, std::span<metric_sum> to) const { copy(of_step, factors_, to); }
  static void copy(const metric_sums<Program>& of_step, const loss_weights<Program>& factors, std::span<metric_sum> to) {
    const metric_sums<Program>& from = factors.reported(of_step);
    for (std::size_t k = 0; k < reported_metrics<Program>::sums; ++k) to[k] = from[k];
  }

 public:
  erased_executor(Executor& executor, const loss_weights<Program>& factors)
      : executor_(executor), group_(executor.group()), factors_(factors) {}

  typename any_executor<T>::program_info about() const override {
    using reported = reported_metrics<Program>;
    static_assert(reported::sums <= std::tuple_size_v<metric_sums<Program>>, "each name has a sum");
    return {reported::all, ends_of_program<Program>, names_of_ends<Program>};
  }
  any_process_group& group() override { return group_; }
  void check(const samples<T>& batch, row_range rows, const detail::sample_names& names) override {
    if (batch.stored) return;  // see stored_stream
    check_arrays<Program>(batch);
    check_rows<Program>(batch, rows, names);
  }
  void prepare(int batch_size, purpose why) override { executor_.prepare(batch_size, why); }
  void train_step(const samples<T>& batch, std::span<metric_sum> sums) override {
    if constexpr (may_be_pending) {
      results_.push_back({executor_.train_step(weighted_.of(batch, factors_)), factors_});
      if (results_.size() == 1 && results_[0].sums.is_ready()) read_result(sums);
    } else {
      copy(executor_.train_step(weighted_.of(batch, factors_)), sums);
    }
  }
  long pending() const override {
    if constexpr (may_be_pending) return long(results_.size() - read_);
    return 0;
  }
  void read_result([[maybe_unused]] std::span<metric_sum> sums) override {
    if constexpr (may_be_pending) {
      copy(results_[read_].sums.get(), results_[read_].factors, sums);
      if (++read_ == results_.size()) results_.clear(), read_ = 0;
    }
  }
  void evaluate_step(const samples<T>& batch, std::span<metric_sum> sums) override {
    copy(executor_.evaluate_step(weighted_.of(batch, factors_)), sums);
  }
  void finish(std::span<metric_sum> sums) override { copy(executor_.finish(), sums); }
  void launch_together(long steps) override { executor_.launch_together(steps); }
  long step() const override { return executor_.step(); }
  double learning_rate() const override { return executor_.learning_rate(); }
  void set_learning_rate(double rate) override { executor_.set_learning_rate(rate); }
  double hash_of_parameters() override {
    if (executor_.group().size() == 1) return 0;
    STRATA_TRY { return as_double(hash_of_words(std::as_bytes(executor_.parameters()))); }
    STRATA_CATCH(const divided_parameters& no_process_has_all) { return 0; }
  }
  double communicating() const override { return executor_.communicating(); }
  double waiting() const override { return executor_.waiting(); }
};

}  // namespace detail

}  // namespace strata
