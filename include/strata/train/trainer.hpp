// trainer{network{}, optimizer, loss{}, metrics..., strategy}: compile, fit, evaluate, predict.
#pragma once
#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <strata/base/stopwatch.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/concepts/strategy.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/network/summary.hpp>
#include <strata/train/agreement.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/predictions.hpp>
#include <strata/train/progress.hpp>
#include <strata/train/time_split.hpp>
#include <strata/train/training_session.hpp>
#include <vector>

namespace strata {

// The words of the sentences about data that do not fit the network. None is ever defined.
template <int... Extents>
struct the_network_takes;
template <int... Extents>
struct the_data_set_yields;
template <class Taken, class Yielded>
struct data_mismatch;
template <class Loss, label_kind Wanted>
struct the_loss_takes_labels;
template <label_kind Given>
struct the_data_set_has_labels;
template <class Argument, class Why>
struct wrong_argument;

inline constexpr reason fit_and_evaluate_take_batches_put_batch_behind_the_data{"fit and evaluate take batches: data | data::batch<64>"};
template <class Metric, label_kind Kind>
struct metric_does_not_go_with_labels;

inline constexpr reason fit_takes_options_and_callbacks{"fit takes epochs, steps_per_epoch, validation, verbosity and callbacks"};
inline constexpr reason the_hooks_of_a_callback_take_a_training_state{"each hook of a callback takes a training_state&"};
inline constexpr reason a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed{
    "behind network, optimizer and loss come metrics, a strategy, a precision and a seed"};

/// Defined in train/weights_file.hpp, which costs two seconds of compilation that most programs need not spend.
template <class Network, class T>
struct please_include_strata_train_weights_file;

namespace detail {

// (With the sequence as a default template argument g++ 12 crashes.)
template <template <int...> class Words, shape S>
struct spelled {
  template <int... I>
  static auto with(std::integer_sequence<int, I...>) -> Words<S[I]...>;
  using type = decltype(with(std::make_integer_sequence<int, S.rank()>{}));
};

/// Whether a source has what a program needs; as a type, so that the error is a sentence.
template <class Program, class Source, bool NeedsLabels>
struct data_verdict {
  using network = typename Program::network;
  using loss = typename Program::loss;
  static constexpr bool shape_fits = Source::sample_shape == network::input_shape;
  static constexpr bool labels_fit = !NeedsLabels || Source::labels == loss::labels;
  static constexpr bool targets_fit =
      !NeedsLabels || !labels_fit || loss::labels == label_kind::sparse || Source::target_shape == network::output_shape;

  static auto sentence() {
    if constexpr (!shape_fits)
      return std::type_identity<data_mismatch<typename spelled<the_network_takes, network::input_shape>::type,
                                              typename spelled<the_data_set_yields, Source::sample_shape>::type>>{};
    else if constexpr (!labels_fit)
      return std::type_identity<data_mismatch<the_loss_takes_labels<loss, loss::labels>, the_data_set_has_labels<Source::labels>>>{};
    else if constexpr (!targets_fit)
      return std::type_identity<data_mismatch<typename spelled<the_network_takes, network::output_shape>::type,
                                              typename spelled<the_data_set_yields, Source::target_shape>::type>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

template <class Program, class Source, bool NeedsLabels>
  requires(!batch_source<Source>)
struct data_verdict<Program, Source, NeedsLabels> {
  using type = wrong_argument<Source, because<fit_and_evaluate_take_batches_put_batch_behind_the_data>>;
};

template <class T>
struct is_metric : std::bool_constant<metric<T>> {};
template <class T>
struct is_strategy : std::bool_constant<strategy<T>> {};
template <class T>
struct is_precision : std::bool_constant<precision_policy<T>> {};

template <class... Extra>
struct sorted_extras {
  using metrics = filter_t<is_metric, Extra...>;
  using strategy = at_t<0, join_t<filter_t<is_strategy, Extra...>, list<one_device>>>;
  using precision = at_t<0, join_t<filter_t<is_precision, Extra...>, list<precision::f32>>>;
};

template <class T>
inline constexpr bool is_validation = false;
template <class Source>
inline constexpr bool is_validation<validation<Source>> = true;

/// The first of args that is a T, or `otherwise`.
template <class T, class... Args>
constexpr T pick(T otherwise, const Args&... args) {
  if constexpr ((std::same_as<T, Args> || ...))
    return std::get<const T&>(std::tie(args...));
  else
    return otherwise;
}
/// f(source). One that is const is copied, since whoever reads it moves on in it; what is no source at all has got its sentence.
template <class Source, class F>
void with_source(Source& source, F&& f) {
  if constexpr (batch_source<Source&>) {
    f(source);
  } else if constexpr (batch_source<std::remove_const_t<Source>&>) {
    std::remove_const_t<Source> copy(source);
    f(copy);
  }
}
/// The argument of type T, or one made without arguments.
template <class T, class... Args>
constexpr T pick_or_make(const Args&... args) {
  if constexpr ((std::same_as<T, Args> || ...))
    return std::get<const T&>(std::tie(args...));
  else
    return T{};
}

}  // namespace detail

/// What fit takes beside the data: options and callbacks, in any order.
template <class O>
concept fit_option = std::same_as<O, epochs> || std::same_as<O, initial_epoch> || std::same_as<O, steps_per_epoch> ||
                     std::same_as<O, verbosity> || detail::is_validation<O> || callback<O> || session_callback<O>;

/// What a trainer takes beside network, optimizer and loss.
template <class E>
concept trainer_extra = metric<E> || strategy<E> || precision_policy<E> || std::same_as<E, seed>;

namespace detail {
template <class T>
struct is_no_fit_option : std::bool_constant<!fit_option<T>> {};
template <class T>
struct is_no_trainer_extra : std::bool_constant<!trainer_extra<T>> {};

template <label_kind Kind>
struct unfit_for {
  template <class M>
  struct predicate : std::bool_constant<!measures<M, Kind>> {};
};
template <label_kind Kind, class Unfit>
struct metric_verdict {
  using type = no_complaint;
};
template <label_kind Kind, class First, class... More>
struct metric_verdict<Kind, list<First, More...>> {
  using type = metric_does_not_go_with_labels<First, Kind>;
};
template <label_kind Kind, class... M>
auto metrics_unfit_for(list<M...>) -> filter_t<unfit_for<Kind>::template predicate, M...>;

/// The first of the arguments that was refused, as a sentence.
template <class Refused, const reason& Why>
struct argument_verdict {
  using type = wrong_argument<at_t<0, Refused>, because<Why>>;
};
template <const reason& Why>
struct argument_verdict<list<>, Why> {
  using type = no_complaint;
};
template <class Refused>
struct fit_option_verdict : argument_verdict<Refused, fit_takes_options_and_callbacks> {};
template <class First, class... More>
  requires hooks::any<First>
struct fit_option_verdict<list<First, More...>> : argument_verdict<list<First>, the_hooks_of_a_callback_take_a_training_state> {};
}  // namespace detail

/// The whole training program. Its type holds network, loss, optimizer, metrics, precision and strategy, from which the
/// compiler derives kernels and memory.  https://keras.io/api/models/model_training_apis
template <class Program, class Strategy>
class trainer {
 public:
  using program_type = Program;
  using strategy_type = Strategy;
  using value_type = typename Program::value_type;
  using network = typename Program::network;
  using executor_type = typename Strategy::template executor<Program>;

  using unfit_metrics = decltype(detail::metrics_unfit_for<Program::loss::labels>(typename Program::metrics{}));
  static_assert(sizeof(typename detail::metric_verdict<Program::loss::labels, unfit_metrics>::type) > 0,
                "a metric does not go with the labels that the loss takes");

 private:
  using T = value_type;
  using weights_file = please_include_strata_train_weights_file<network, T>;
  executor_type executor_;  // completed first: its own sentences come without the noise of a failed concept
  static_assert(executor<executor_type, Program>);
  long step_ = 0;
  std::optional<double> learning_rate_by_hand_;
  row_choice own_rows_ = own_rows();
  time_split time_;  // of the fit under way
  detail::plan_of_fit plan_;
  friend detail::session_of<trainer>;

 public:
  /// Throws strata::error if the numbers of the optimizer make no sense.
  template <class... Extra>
  explicit trainer(network, typename Program::optimizer optimizer, typename Program::loss, const Extra&... extra)
      : executor_(detail::pick_or_make<Strategy>(extra...)
                      .template make<Program>((optimizer.validate(), std::move(optimizer)), detail::pick(seed(1), extra...).value)) {
    using refused = filter_t<detail::is_no_trainer_extra, Extra...>;
    static_assert(sizeof(typename detail::argument_verdict<refused, a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed>::type) > 0,
                  "the trainer does not know one of its arguments");
  }

  /// Trains on a batch_source for `epochs`; returns loss and metrics of each.
  /// Throws strata::error for labels that are no class, numbers that are no row of an embedding, an empty source, or a loss that is
  /// nan or infinite.
  template <class Source, class... Options>
  history fit(Source&& source, Options&&... options) {
    static_assert(sizeof(verdict_on<Source>) > 0, "the data set does not fit the network");
    using refused = filter_t<detail::is_no_fit_option, std::remove_cvref_t<Options>...>;
    static_assert(sizeof(typename detail::fit_option_verdict<refused>::type) > 0, "fit does not know one of its arguments");
    static_assert(!(... || (session_callback<std::remove_cvref_t<Options>> && std::is_const_v<std::remove_reference_t<Options>>)),
                  "a session_callback, such as backup_and_restore, changes during fit: it cannot be const");
    history past;
    if constexpr (std::is_same_v<refused, list<>>)
      detail::with_source(source, [&](auto& from) {
        if constexpr (requires { typename Strategy::fit_callback; }) {
          typename Strategy::fit_callback of_strategy;
          past = fit_checked(from, options..., of_strategy);
        } else {
          past = fit_checked(from, options...);
        }
      });
    return past;
  }

  /// Loss and metrics over a batch_source.
  template <class Source>
  logs evaluate(Source&& source) {
    static_assert(sizeof(verdict_on<Source>) > 0, "the data set does not fit the network");
    logs out;
    detail::with_source(source, [&](auto& from) { report(out, evaluate_all(from), ""); });
    return out;
  }

  /// The network's output for each sample of a batch_source; labels are ignored.
  template <class Source>
  predictions<T, network::output_shape> predict(Source&& source) {
    static_assert(sizeof(verdict_on<Source, false>) > 0, "the data set does not fit the network");
    predictions<T, network::output_shape> out;
    detail::with_source(source, [&](auto& from) {
      executor_.prepare(std::remove_cvref_t<Source>::batch_size, purpose::inference);
      detail::stream_over<T, std::remove_reference_t<decltype(from)>> stream(from);  // which makes all rows
      stream.start(0);
      for (samples<T> batch; stream.next(batch);) {
        const std::size_t before = out.values.size(), size = std::size_t(network::output_shape.size());
        detail::check_numbers<Program>(batch, {0, batch.count}, long(before / size));
        out.values.resize(before + std::size_t(batch.count) * size);
        executor_.predict({batch.x, nullptr, nullptr, batch.count}, out.values.data() + before);
      }
    });
    return out;
  }

  /// The same for `count` samples in memory, without a source: x is (count, input shape), out (count, output shape).
  void predict(std::span<const T> x, std::span<T> out) {
    const std::size_t count = x.size() / std::size_t(network::input_shape.size());
    if (x.size() != count * std::size_t(network::input_shape.size()) || out.size() != count * std::size_t(network::output_shape.size()))
      throw error("predict: " + std::to_string(x.size()) + " inputs and room for " + std::to_string(out.size()) + " outputs, but a sample has " +
                  std::to_string(network::input_shape.size()) + " and " + std::to_string(network::output_shape.size()));
    constexpr std::size_t most = 1024, in_size = std::size_t(network::input_shape.size()), out_size = std::size_t(network::output_shape.size());
    executor_.prepare(int(std::min(count, most)), purpose::inference);
    for (std::size_t at = 0; at < count; at += most) {
      const samples<T> some{x.data() + at * in_size, nullptr, nullptr, int(std::min(count - at, most))};
      detail::check_numbers<Program>(some, {0, some.count}, long(at));
      executor_.predict(some, out.data() + at * out_size);
    }
  }

  /// One update on one batch, for training loops of one's own. Returns (sum, count) of the loss and of each metric.
  /// Throws strata::error, before anything has changed, for labels that are no class and numbers that are no row of an embedding.
  tallies<Program> train_step(const samples<T>& batch) {
    detail::check_batch<Program>(batch, own_rows_of(batch), 0);
    executor_.prepare(batch.count, purpose::training);
    ++step_;
    return executor_.train_step(batch);
  }

  /// All weights and state in one block, laid out by layout_of_program<program_type>.
  std::span<const T> parameters() const { return const_cast<executor_type&>(executor_).parameters(); }
  /// Replaces them.
  void set_parameters(std::span<const T> values) {
    const std::span<T> own = executor_.parameters();
    if (values.size() != own.size())
      throw error("set_parameters: " + std::to_string(values.size()) + " numbers for an arena of " + std::to_string(own.size()));
    std::ranges::copy(values, own.begin());
    executor_.parameters_changed();
  }

  /// safetensors, one tensor per parameter; needs <strata/train/weights_file.hpp>.
  /// Throws strata::error; the file is complete or absent.
  template <class Path>
  void save_weights(const Path& path) const {
    weights_file::save(path, parameters());
  }
  /// Throws strata::error naming the layer that differs; then nothing has changed.
  template <class Path>
  void load_weights(const Path& path) {
    weights_file::load(path, executor_.parameters());
    executor_.parameters_changed();
  }

  double learning_rate() const { return const_cast<executor_type&>(executor_).optimizer().learning_rate(step_); }
  void set_learning_rate(double rate) { executor_.optimizer().learning_rate = *(learning_rate_by_hand_ = rate); }

  executor_type& executor() { return executor_; }
  /// Whether this process prints and writes files: of several that train together, one does.
  bool is_chief() const {
    if constexpr (requires { executor_.is_chief(); })
      return executor_.is_chief();
    else
      return true;
  }

 private:
  template <class Source, bool NeedsLabels = true>
  using verdict_on = typename detail::data_verdict<Program, std::remove_cvref_t<Source>, NeedsLabels>::type;
  template <class Source>
  static constexpr bool same_precision = std::same_as<typename std::remove_cvref_t<Source>::value_type, samples<T>>;

  struct fit_settings {
    int first_epoch, epochs, batch_size;
    long steps;  // of an epoch; 0: as many as a pass over the data has
    verbosity how;
  };

  template <class Source, class... Options>
  history fit_checked(Source& source, Options&... options) {
    static_assert(same_precision<Source>, "the batches have another precision than the network: batch<N, double> goes with precision::f64");
    detail::stream_over<T, Source> stream(source, own_rows_, writers());
    const auto validate = [&](logs& values) { (add_validation(options, values), ...); };
    const fit_settings settings{detail::pick(initial_epoch(0), options...).number, detail::pick(epochs(1), options...).count, Source::batch_size,
                                detail::pick(steps_per_epoch(0), options...).count, detail::pick(verbosity::bar, options...)};
    training_position at;
    training_state state;
    const auto run = [&](training_session* session) {
      detail::hooks_of<Options...> hooks(session, options...);
      run_epochs(stream, hooks, validate, settings, at, state);
    };
    if constexpr ((session_callback<Options> || ...)) {
      detail::session_of<trainer> session(*this, stream, at, state);
      run(&session);
    } else {
      run(nullptr);
    }
    return std::move(at.past);
  }

  [[gnu::noinline]] void run_epochs(detail::batch_stream<T>& stream, detail::hook_calls& hooks, const std::function<void(logs&)>& validate,
                                    const fit_settings& settings, training_position& at, training_state& state) {
    time_ = {};
    const double communicated = communicating(), waited = waiting();
    std::optional<detail::stopwatch> all(time_.total);
    progress_bar progress(std::cout, is_chief() ? settings.how : verbosity::off);
    executor_.prepare(settings.batch_size, purpose::training);
    plan_ = {double(settings.batch_size),   double(stream.length()), double(settings.first_epoch),
             double(settings.epochs), double(settings.steps),  learning_rate()};
    detail::refuse_other_plans(executor_, plan_, stream.order());
    state.epoch = at.next_pass = settings.first_epoch;
    state.epochs = settings.epochs;
    state.step = step_;
    state.learning_rate = learning_rate();
    hooks.fit_begin();
    hooks.train_begin(state);
    for (; state.epoch < settings.epochs && (!state.stop_training || at.in_epoch); ++state.epoch) {
      state.values = {};
      state.learning_rate = learning_rate();
      hooks.epoch_begin(state);
      progress.begin_epoch(state.epoch, settings.epochs, settings.steps > 0 ? settings.steps : stream.length());
      train_epoch(stream, settings.steps, at, state, progress, hooks);
      if (state.interrupted) break;
      report(state.values, at.tallies, "");
      validate(state.values);
      progress.end_epoch(state.values);
      hooks.epoch_end(state);
      detail::share_decisions(executor_, state);
      at.past.add(state.epoch, state.values);
      if (state.new_learning_rate) set_learning_rate(*std::exchange(state.new_learning_rate, std::nullopt));
      hooks.fit_epoch_end();
      if (state.interrupted) break;
    }
    hooks.train_end(state);
    all.reset();
    time_.communication = communicating() - communicated;
    time_.waiting = waiting() - waited;
    at.past.set_times(detail::gather(executor_, time_));
    if (is_chief() && settings.how != verbosity::off && time_.communication + time_.waiting > 0)
      for (std::size_t r = 0; r < at.past.times().size(); ++r) std::cout << "process " << r << ", " << at.past.times()[r] << std::endl;
    hooks.fit_end();
  }

  /// Seconds so far that messages between processes have taken, and waiting for them.
  double communicating() const {
    if constexpr (requires { executor_.communicating(); }) return executor_.communicating();
    return 0;
  }
  double waiting() const {
    if constexpr (requires { executor_.waiting(); }) return executor_.waiting();
    return 0;
  }

  /// `steps` batches, or one pass where it is 0. A pass goes on in the next epoch where this one leaves it; an epoch that was
  /// interrupted goes on, too.
  void train_epoch(detail::batch_stream<T>& stream, long steps, training_position& at, training_state& state, progress_bar& progress,
                   detail::hook_calls& hooks) {
    samples<T> batch;
    const auto begins_anew = [&] {
      start_pass(stream, at.next_pass++);
      at.in_pass = true;
      at.batches_of_pass = 0;
      return next_of(stream, batch);
    };
    const auto goes_on = [&] {
      return steps == 0 ? next_of(stream, batch) : at.steps_of_epoch < steps && (next_of(stream, batch) || begins_anew());
    };
    const bool resumes = std::exchange(at.in_epoch, true);
    if (!resumes) {
      at.steps_of_epoch = at.samples_of_epoch = 0;
      at.tallies.assign(std::tuple_size_v<tallies<Program>>, {});
    }
    for (bool more = resumes || (steps > 0 && at.in_pass) ? goes_on() : begins_anew(); more; more = goes_on()) {
      train_on(batch, at, state);
      hooks.batch_end(state);
      hooks.step_end();
      if (state.interrupted) return;
      if (progress.due()) {
        logs now;
        report(now, at.tallies, "");
        progress.step(at.steps_of_epoch, now);
      }
    }
    accumulate(at.tallies, executor_.finish());
    if (at.steps_of_epoch == 0) throw error("epoch " + std::to_string(state.epoch + 1) + ": the data set is empty");
    at.in_epoch = false;
    if (steps == 0) at.in_pass = false;
  }

  void train_on(const samples<T>& batch, training_position& at, training_state& state) {
    const row_range rows = own_rows_of(batch);
    detail::check_batch<Program>(batch, rows, at.samples_of_epoch);
    const tallies<Program> one = timed_step([&] { return executor_.train_step(batch); });
    accumulate(at.tallies, one);
    state.loss = one[0].mean();
    if (!std::isfinite(state.loss))
      detail::report_bad_loss(state.loss, batch, rows, network::input_shape.size(), network::output_shape.size(), state.epoch, at.steps_of_epoch,
                              at.samples_of_epoch);
    state.step = ++step_;
    at.samples_of_epoch += batch.count;
    ++at.steps_of_epoch;
    ++at.batches_of_pass;
  }

  void start_pass(detail::batch_stream<T>& stream, int pass) {
    const detail::stopwatch running(time_.input);
    stream.start(pass);
  }
  bool next_of(detail::batch_stream<T>& stream, samples<T>& batch) {
    const detail::stopwatch running(time_.input);
    return stream.next(batch);
  }
  template <class Step>
  tallies<Program> timed_step(Step&& step) {
    const double before = communicating() + waiting();
    tallies<Program> out;
    {
      const detail::stopwatch running(time_.compute);
      out = step();
    }
    time_.compute -= communicating() + waiting() - before;
    return out;
  }

  /// Of several processes that share each batch, each makes and checks the rows that it computes.
  row_choice own_rows() const {
    if constexpr (requires { executor_.own_rows(); })
      return executor_.own_rows();
    else
      return {};
  }
  /// The threads of a step write the rows of its batch, unless the executor has none to lend.
  row_writers writers() {
    if constexpr (requires { executor_.writers(); })
      return executor_.writers();
    else
      return {};
  }
  row_range own_rows_of(const samples<T>& batch) const { return own_rows_ ? own_rows_(batch.count) : row_range{0, batch.count}; }

  template <class Source>
  tallies<Program> evaluate_all(Source& source) {
    detail::stream_over<T, Source> stream(source, own_rows_, writers());
    return evaluate_stream(stream, Source::batch_size);
  }
  [[gnu::noinline]] tallies<Program> evaluate_stream(detail::batch_stream<T>& stream, int batch_size) {
    executor_.prepare(batch_size, purpose::inference);
    tallies<Program> sum{};
    long seen = 0;
    detail::refuse_other_lengths(executor_, stream.length());
    start_pass(stream, 0);
    for (samples<T> batch; next_of(stream, batch); seen += batch.count) {
      detail::check_batch<Program>(batch, own_rows_of(batch), seen);
      accumulate(sum, timed_step([&] { return executor_.evaluate_step(batch); }));
    }
    if (seen == 0) throw error("evaluate: the data set is empty");
    return sum;
  }

  static void accumulate(auto& sum, const tallies<Program>& one) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += one[k];
  }
  static void report(logs& to, const auto& sum, const std::string& prefix) {
    to.set(prefix + "loss", sum[0].mean());
    [&]<class... M>(list<M...>) {
      [[maybe_unused]] std::size_t k = 0;
      (to.set(prefix + M::name, sum[++k].mean()), ...);
    }(typename Program::metrics{});
  }

  template <class Option>
  void add_validation(Option& option, logs& values) {
    if constexpr (detail::is_validation<std::remove_cvref_t<Option>>) {
      static_assert(sizeof(verdict_on<decltype(option.source)>) > 0, "the data set does not fit the network");
      report(values, evaluate_all(option.source), "val_");
    }
  }
};

template <class Network, class Optimizer, class Loss, class... Extra>
trainer(Network, Optimizer, Loss, Extra...)
    -> trainer<program<Network, Loss, Optimizer, typename detail::sorted_extras<Extra...>::metrics, typename detail::sorted_extras<Extra...>::precision>,
               typename detail::sorted_extras<Extra...>::strategy>;

/// The table of layers, shapes and parameters, as Keras prints it.
template <class Program, class Strategy>
std::string summary(const trainer<Program, Strategy>&) {
  return summary_of<typename Program::network>({.element_size = int(sizeof(typename Program::value_type))});
}

}  // namespace strata
