// trainer{network{}, optimizer, loss{}, metrics..., strategy}: compile, fit, evaluate, predict.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <strata/base/exceptions.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/concepts/strategy.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/network/summary.hpp>
#include <strata/program/executor.hpp>
#include <strata/train/adapt.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/data_verdict.hpp>
#include <strata/train/deduced_program.hpp>
#include <strata/train/fit_loop.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/fit_verdict.hpp>
#include <strata/train/hook_calls.hpp>
#include <strata/train/metric_verdict.hpp>
#include <strata/train/pixel_notice.hpp>
#include <strata/train/predictions.hpp>
#include <strata/train/speed_notice.hpp>
#include <strata/train/step_runner.hpp>
#include <strata/train/stored_stream.hpp>
#include <strata/train/trainable_layers.hpp>
#include <strata/train/trainer_extras.hpp>
#include <strata/train/training_session.hpp>
#include <strata/train/with_source.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strata {

/// Defined in train/weights_file.hpp, which costs two seconds of compilation that most programs need not spend.
template <class Network, class T>
struct please_include_strata_train_weights_file;

namespace detail {
/// Defined in train/fit_session.hpp, which only the headers of session callbacks include.
template <class Program, class Executor>
class fit_in_program;
/// Defined in train/fitted_model.hpp, which callbacks include whose hooks take a fitted_model.
template <class Program, class Executor>
class please_include_strata_train_fitted_model;
struct no_model {
  template <class... Argument>
  explicit no_model(Argument&&...) {}
};
struct layers_of_trainer;
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

  static_assert(detail::diagnosed<typename Program::loss_verdict::type>[0]);
  using unfit_metrics = decltype(detail::metrics_unfit_for<Program::loss::labels>(typename Program::metrics{}));
  static_assert(detail::diagnosed<typename detail::metric_verdict<Program::loss::labels, unfit_metrics>::type>[0]);

 private:
  using T = value_type;
  using weights_file = please_include_strata_train_weights_file<network, T>;
  using step_runner = detail::step_runner<T>;
  using evaluation = detail::evaluated<detail::reported_metrics<Program>::numbers>;
  using erased_executor = detail::erased_executor<Program, executor_type>;
  executor_type executor_;  // declared first: its own diagnostics come before any failed concept
  static_assert(detail::diagnosed<typename detail::executor_verdict<executor_type, Program>::type>[0]);
  static_assert(detail::diagnosed<typename detail::strategy_verdict<Strategy, Program>::type>[0]);
  row_choice own_rows_ = executor_.own_rows();
  std::uint64_t seed_;
  detail::trainable_layers<network> layers_;
  bool is_in_fit_ = false;

 public:
  /// Throws strata::error if the settings of the optimizer are invalid.
  template <class... Extra>
  explicit trainer(network, typename Program::optimizer optimizer, typename Program::loss, const Extra&... extra)
      : executor_(detail::pick_or_make<Strategy>(extra...).template make<Program>(
            (strata::validate<T>(optimizer), std::move(optimizer)), detail::pick(seed(1), extra...).value)),
        seed_(detail::pick(seed(1), extra...).value) {
    using refused = detail::filter_t<detail::is_no_trainer_extra, Extra...>;
    static_assert(detail::diagnosed<typename detail::extra_verdict<refused>::type>[0]);
    using repeated = detail::argument_verdict<detail::repeated_extras<Extra...>,
                                              reasons::a_trainer_takes_one_strategy_one_precision_and_one_seed>;
    static_assert(detail::diagnosed<typename repeated::type>[0]);
  }

  trainer(trainer&&) = default;
  trainer& operator=(trainer&&) = default;
  trainer(const trainer&) = delete;  // a function takes it by reference, trainer& or auto&; set_parameters copies its weights

  /// Trains on a batch_source for `epochs`; returns loss and metrics of each. In a process that only serves others, such as a
  /// parameter server, serves until the training is over and returns an empty history.
  /// Throws strata::error for labels outside the classes, indices that are no row of an embedding, an empty source, or a loss
  /// that is nan or infinite.
  template <class Source, class... Options>
  history fit(Source&& source, Options&&... options) {
    using sentence = typename detail::fit_verdict_with<Strategy, Program, std::remove_cvref_t<Source>, Options...>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    history past;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>) {
      if (serve()) return past;
      telling_errors([&] { detail::with_source(source, [&](auto& from) { past = fit_on(from, options...); }); });
    }
    return past;
  }

  /// Trains on arrays: x is (samples, shape of the input), y has a class index or the shape of the output for each sample. An
  /// array is contiguous elements, such as a vector, an array or a span, a range of std::arrays, or a data::array. Besides the
  /// other options, it takes `batch_size(32)` and `shuffle(true)`, which have these defaults, `sample_weight(weights)` and
  /// `validation_split(0.2)`. The samples are shuffled in the same order in all processes, and after a resume. In asynchronous
  /// training each worker reads its share of them. It also throws strata::error if the sizes of x and y do not match.
  template <detail::array_argument X, detail::array_argument Y, class... Options>
  history fit(X&& x, Y&& y, Options&&... options) {
    using given = detail::arrays<std::remove_cvref_t<X>, std::remove_cvref_t<Y>>;
    using sentence = typename detail::fit_verdict<Program, given, Options...>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    history past;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>) {
      if (serve()) return past;
      telling_errors([&] {
        const auto samples = detail::with_weights("fit", detail::samples_of_arrays<Program>("fit", x, y), options...);
        const batch_size size = detail::pick(batch_size(32), options...);
        data::detail::slice part;
        if constexpr ((std::is_same_v<std::remove_cvref_t<Options>, validation_split> || ...))
          part.count = detail::pick(validation_split(0), options...).to_train(samples.size());
        auto batches = batches_to_train(samples, part, size, detail::pick(shuffle(true), options...));
        if constexpr ((std::is_same_v<std::remove_cvref_t<Options>, validation_split> || ...)) {
          validation held_back(detail::batches_in_order<T>(samples, {.first = part.count}, size));
          past = fit_on(batches, held_back, options...);
        } else {
          past = fit_on(batches, options...);
        }
      });
    }
    return past;
  }

  /// In a process that only serves others, such as a parameter server: returns true when the training is over. In all other
  /// processes: returns false at once. fit calls it first; a program that does more than fit calls it before.
  bool serve() { return executor_.serve(); }

  /// Loss and metrics over a batch_source; callbacks may follow.
  template <class Source, class... Options>
  evaluation evaluate(Source&& source, Options&&... options) {
    using sentence = typename detail::evaluate_verdict<Program, std::remove_cvref_t<Source>, Options...>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    evaluation out;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      telling_errors([&] { detail::with_source(source, [&](auto& from) { out = evaluate_checked(from, options...); }); });
    return out;
  }

  /// The overload for arrays, as in fit; `batch_size(32)`, `sample_weight(weights)` and callbacks may follow.
  template <detail::array_argument X, detail::array_argument Y, class... Options>
  evaluation evaluate(X&& x, Y&& y, Options&&... options) {
    using given = detail::arrays<std::remove_cvref_t<X>, std::remove_cvref_t<Y>>;
    using sentence = typename detail::evaluate_verdict<Program, given, Options...>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    evaluation out;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      telling_errors([&] {
        auto batches = detail::batches_in_order<T>(
            detail::with_weights("evaluate", detail::samples_of_arrays<Program>("evaluate", x, y), options...), {},
            detail::pick(batch_size(32), options...));
        detail::with_source(batches, [&](auto& from) { out = evaluate_checked(from, options...); });
      });
    return out;
  }

  /// The network's output for each sample of an array, one sample or many, as in fit. Callbacks may follow. Throws strata::error
  /// if the elements of x do not make whole samples.
  template <detail::array_argument X, class... Options>
    requires(!detail::array_argument<Options> && ...)
  predictions<T, network::output_shape> predict(const X& x, Options&&... options) {
    using sentence = typename detail::predict_verdict<Program, detail::arrays<X, void>, Options...>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    predictions<T, network::output_shape> out;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>) {
      const detail::values_of_array<T, network::input_shape> rows(x);
      const std::span<const T> values = rows.values();
      out.values.resize(values.size() / std::size_t(network::input_shape.size()) * std::size_t(network::output_shape.size()));
      predict_checked(
          [&](const auto& predict_batch) {
            predict_in_memory(values, out.values, [&](const samples<T>& piece, T* to) {
              predict_batch(piece.count, [&] { executor_.predict(piece, to); });
            });
          },
          options...);
    }
    return out;
  }

  /// The network's output for each sample of a batch_source; labels are ignored. Callbacks may follow.
  template <class Source, class... Options>
    requires(!detail::array_argument<Source>)
  predictions<T, network::output_shape> predict(Source&& source, Options&&... options) {
    using sentence = typename detail::predict_verdict<Program, std::remove_cvref_t<Source>, Options...>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    predictions<T, network::output_shape> out;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      detail::with_source(source, [&](auto& from) {
        executor_.prepare(batch_size_of(from), purpose::inference);
        detail::stream_over<T, std::remove_reference_t<decltype(from)>> stream(from);  // of all rows
        stream.start(0);
        predict_checked(
            [&](const auto& predict_batch) {
              for (samples<T> batch; stream.next(batch);) {
                const std::size_t before = out.values.size(), size = std::size_t(network::output_shape.size());
                refuse_other_rows<Program>(batch, {0, batch.count},
                                           detail::names_in_stream<T>(stream, batch.count, long(before / size)));
                out.values.resize(before + std::size_t(batch.count) * size);
                predict_batch(batch.count, [&] { executor_.predict({batch.x(), batch.count}, out.values.data() + before); });
              }
            },
            options...);
      });
    return out;
  }

  /// Predicts samples in memory: x is (count, input shape), out (count, output shape). Throws strata::error for other sizes.
  void predict(std::span<const T> x, std::span<T> out) {
    predict_in_memory(x, out, [&](const samples<T>& piece, T* to) { executor_.predict(piece, to); });
  }

  /// One update on one batch, for your own training loop. Returns (sum, count) of the loss and of each metric.
  /// Throws strata::error, before anything has changed, for an empty batch, arrays that are missing, labels that are no class and
  /// indices that are no row of an embedding.
  metric_sums<Program> train_step(const samples<T>& batch) {
    detail::check_arrays<Program>(batch);
    executor_.prepare(batch.count, purpose::training);
    detail::check_rows<Program>(batch, own_rows_ ? own_rows_(batch.count) : row_range{0, batch.count}, detail::sample_names());
    return step_result<Program>(executor_.train_step(batch)).get();
  }

  /// All weights and state in one block, laid out by layout_of_program<program_type>.
  std::span<const T> parameters() const { return executor_.parameters(); }
  /// Replaces them. Throws strata::error for another size.
  void set_parameters(std::span<const T> values) {
    const std::span<T> own = executor_.parameters();
    if (values.size() != own.size())
      throw_error(detail::text_of({"set_parameters: got ", values.size(), " values, but parameters() has ", own.size(),
                                   " with the padding between arrays"}));
    std::copy_n(values.data(), values.size(), own.data());
    executor_.parameters_changed();
  }

  /// Sets mean and variance of each layer `normalization` that takes the raw data, from one pass over a batch_source: before fit,
  /// once. Labels are ignored. Every process of a training reads all of the data, so that all have equal weights. Throws
  /// strata::error, before anything has changed, for an empty source, a share of the data, and features that are nan, infinite or
  /// too large for the precision.
  template <class Source>
  void adapt(Source&& source) {
    using sentence = verdict_on<Source, false>;
    using on_network = typename detail::adapt_verdict<network>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    static_assert(detail::diagnosed<on_network>[0]);
    if constexpr (std::is_same_v<sentence, detail::no_complaint> && std::is_same_v<on_network, detail::no_complaint>)
      detail::with_source(source, [&](auto& from) {
        if (data::detail::shards_of(from) > 1)
          throw_error("adapt: this process would read a share of the data: adapt before shard");
        detail::stream_over<T, std::remove_reference_t<decltype(from)>> stream(from);  // of all rows
        static constexpr auto layers = detail::adapting_layers<network>();
        detail::adapt_to<T>(stream, network::input_shape.size(), layers, executor_.parameters());
        executor_.parameters_changed();
      });
  }

  /// Needs <strata/train/weights_file.hpp>. A name that ends in .weights.h5, .keras or .h5 gives a file of Keras and needs
  /// <strata/interop/keras/keras_files.hpp>, too; any other name gives safetensors, one tensor per parameter.
  /// Throws strata::error; the file is complete or absent.
  template <class Path>
  void save_weights(const Path& path) const {
    const announced_work saves(executor_.group(), "saves weights");
    weights_file::template save<Program>(path, executor_);
  }
  /// Reads such a file, including the state of the optimizer and its learning rate if a file of Keras has them for the same
  /// optimizer. Throws strata::error naming the layer that differs; then nothing has changed.
  template <class Path>
  void load_weights(const Path& path) {
    weights_file::template load<Program>(path, executor_);
  }

  /// The learning rate of the next update.
  double learning_rate() const { return executor_.learning_rate(); }
  /// Replaces the optimizer's schedule by a constant rate. Throws strata::error if it is negative or not finite.
  void set_learning_rate(double rate) { executor_.set_learning_rate(rate); }

  /// Resets the optimizer to that of a new trainer: its moments, and the number of updates, with which a schedule begins again.
  /// Weights stay, and so does a rate from set_learning_rate. After a loss that is not finite, load or set finite weights, too. A
  /// collective call of all processes that train together.
  void reset_optimizer() {
    constexpr bool has_state = executor_type::traits.has_slots || executor_type::traits.collects_slots;
    static_assert(has_state, "reset_optimizer: the state of this optimizer is on parameter servers: start them anew");
    if constexpr (has_state) detail::reset_optimizer(executor_);
  }

  /// Freezes a layer, by its name in the summary, or trains it again, from the next step on: no update changes the weights of a
  /// frozen layer, its regularizers add no penalty, and no gradient is computed below the first layer that trains. A collective
  /// call. Files of weights and snapshots do not store this setting. See frozen<...> for what is never trained.
  ///   model.set_trainable("conv2d", false);
  /// Throws strata::error for a name that the summary does not have, and for a batch_norm, which computes something else when it
  /// is frozen.  https://keras.io/guides/transfer_learning
  void set_trainable(const std::string& layer, bool trains) {
    static_assert(
        can_freeze,
        "set_trainable: this strategy, such as parameter_server, trains all layers: write frozen<...> around those that "
        "shall not change");
    static_assert(
        !averages_weights,
        "set_trainable: the optimizer ema averages the weights of all layers: write frozen<...> around those that shall "
        "not change");
    layers_.set_trainable(layer, trains);
    if constexpr (can_freeze) executor_.freeze(layers_.frozen());
  }
  /// Whether an update changes any weight of that layer.
  bool is_trainable(const std::string& layer) const { return layers_.is_trainable(layer); }

  executor_type& executor() { return executor_; }
  /// Whether this process prints and writes files: true in one of the processes that train together.
  bool is_chief() const { return executor_.group().is_chief(); }

 private:
  friend struct detail::layers_of_trainer;  // summary as a friend, whose template has a condition, would be ambiguous to clang 16
  static constexpr bool averages_weights = traits_of_optimizer<typename Program::optimizer>.averages_weights;
  static constexpr bool can_freeze = executor_type::traits.freezes;

  template <class Source, bool NeedsLabels = true>
  using verdict_on = typename detail::data_verdict<Program, std::remove_cvref_t<Source>, NeedsLabels>::type;

  /// Runs f. Before an exception leaves it, the processes that train with this one receive its text, the reason why this process
  /// may end. A process that trains again withdraws it.
  template <class F>
  void telling_errors(F&& f) {
    auto& group = executor_.group();
    group.announce_error("");
    STRATA_TRY { f(); }
    STRATA_CATCH(const communication_error& known) { STRATA_THROW_AGAIN; }
    STRATA_CATCH(const std::exception& failure) {
      group.announce_error(failure.what());
      STRATA_THROW_AGAIN;
    }
    STRATA_CATCH_ALL {
      group.announce_error("an exception that is not a std::exception");
      STRATA_THROW_AGAIN;
    }
  }

  /// predict_piece(samples, where their outputs go)
  void predict_in_memory(std::span<const T> x, std::span<T> out, const auto& predict_piece) {
    detail::predict_in_pieces<Program>(x, out, [&](int most) { executor_.prepare(most, purpose::inference); }, predict_piece);
  }

  template <class Samples>
  auto batches_to_train(const Samples& samples, data::detail::slice part, const batch_size& size, const shuffle& order) {
    if constexpr (executor_type::traits.shares_data)
      return detail::batches_to_train<T>(samples, part, size, order, seed_, executor_.share_of_data());
    else
      return detail::batches_to_train<T>(samples, part, size, order, seed_);
  }

  /// The option as fit_checked reads it: with batches instead of arrays.
  template <class Option>
  static decltype(auto) prepared(Option& option, [[maybe_unused]] int size) {
    const auto batches = [&](auto samples) {
      return validation(detail::batches_in_order<T>(std::move(samples), {}, batch_size(size)));
    };
    if constexpr (requires { option.x, option.y, option.weights; } && detail::is_validation<std::remove_const_t<Option>>)
      return batches(
          detail::weighted("validation", detail::samples_of_arrays<Program>("validation", option.x, option.y), option.weights));
    else if constexpr (requires { option.x, option.y; } && detail::is_validation<std::remove_const_t<Option>>)
      return batches(detail::samples_of_arrays<Program>("validation", option.x, option.y));
    else
      return (option);
  }
  static constexpr bool strategy_has_a_callback = requires { typename Strategy::fit_callback; };

  template <class Source, class... Options>
  history fit_on(Source& source, Options&... options) {
    [[maybe_unused]] const int size = batch_size_of(source);
    const auto run = [&](auto&&... ready) {
      if constexpr (strategy_has_a_callback) {
        typename Strategy::fit_callback of_strategy;
        return fit_checked(source, ready..., of_strategy);
      } else {
        return fit_checked(source, ready...);
      }
    };
    return run(prepared(options, size)...);
  }

  /// The notice of speed_notice, if the kernels of this program run on the host.
  static std::string_view notice_of_speed() {
    if constexpr (requires { requires device_of<typename executor_type::backend>::is_host; }) return detail::speed_notice();
    return {};
  }

  std::string notice_of_layers([[maybe_unused]] verbosity how) const {
    if constexpr (detail::has_normalization<network>()) {
      if (how == verbosity::off || !is_chief()) return {};
      STRATA_TRY { return detail::notice_of_normalization<network>(executor_.parameters()); }
      STRATA_CATCH(const divided_parameters& no_process_has_all) {}
    }
    return {};
  }

  template <class Source, class... Options>
  [[gnu::cold]] history fit_checked(Source& source, Options&... options) {
    const detail::running_fit running(is_in_fit_);
    auto stream =
        detail::stream_to_train<Program>(executor_, source, own_rows_, detail::pick(class_weight(), options...).empty());
    erased_executor executor(executor_);
    step_runner steps(executor, own_rows_);
    detail::fit_loop<T> loop(executor, steps, stream,
                             {.first_epoch = detail::pick(initial_epoch(0), options...).number,
                              .epochs = detail::pick(epochs(1), options...).count,
                              .batch_size = batch_size_of(source),
                              .steps = detail::pick(steps_per_epoch(0), options...).count,
                              .execution = detail::pick(steps_per_execution(1), options...).count,
                              .how = detail::pick(verbosity::bar, options...),
                              .validates = (detail::is_validation<std::remove_const_t<Options>> || ...),
                              .may_get_pixels = detail::computes_with_inputs<network>(),
                              .about_layers = notice_of_layers(detail::pick(verbosity::bar, options...)),
                              .frozen = layers_.text(),
                              .notice = notice_of_speed()});
    steps.weigh(detail::pick(class_weight(), options...));
    const int every = detail::pick(validation_freq(1), options...).epochs;
    const auto at_most = detail::pick(validation_steps(0), options...);
    if (every < 1) throw_error({"fit: validation_freq(", every, "): it must be at least 1"});
    if (at_most.count < 0) throw_error({"fit: validation_steps(", at_most.count, "): it must be at least 0"});
    return with_hooks(
        executor, steps.time,
        [&](detail::hook_list hooks) {
          hooks.in_fit = true;
          const auto validate = [&](logs& values) {
            loop.state.skips_validation = (loop.state.epoch + 1) % every != 0;
            if (!loop.state.skips_validation) (add_validation(steps, options, at_most, hooks, values), ...);
          };
          if constexpr ((session_callback<Options> || ...)) {
            detail::erased_membership membership(executor_.group());
            detail::fit_in_program<Program, executor_type> fit(executor_, stream, loop.at, loop.state, loop.plan, layers_.text(),
                                                               hooks);
            training_session session{fit, executor.group(), membership, loop.state};
            hooks.session = &session;
            return loop.run(hooks, validate);
          } else {
            return loop.run(hooks, validate);
          }
        },
        options...);
  }

  /// Returns f(the hooks of the callbacks among some options).
  template <class... Options>
  auto with_hooks(erased_executor& executor, [[maybe_unused]] const time_split& time, const auto& f, Options&... options) {
    constexpr bool takes_model = ((hooks::any_of_model<Options> || callback_with_arrays<Options>) || ...);
    fitted_model* reached = nullptr;
    std::conditional_t<takes_model, detail::please_include_strata_train_fitted_model<Program, executor_type>, detail::no_model>
        model(executor_, executor.group(), time);
    if constexpr (takes_model) reached = &model;
    return f(detail::hook_list{detail::hooks_of<Options>(options, reached).get()...});
  }

  template <class Source>
  [[gnu::cold]] std::vector<metric_sum> evaluate_all(step_runner& steps, Source& source, validation_steps at_most,
                                                     const detail::hook_list& hooks) {
    detail::stream_over<T, Source> stream(source, own_rows_, executor_.writers());
    return steps.evaluate(stream, batch_size_of(source), at_most.count, hooks);
  }

  template <class Option>
  [[gnu::cold]] void add_validation(step_runner& steps, Option& option, validation_steps at_most, const detail::hook_list& hooks,
                                    logs& values) {
    if constexpr (detail::is_validation<std::remove_cvref_t<Option>>)
      detail::with_source(option.source, [&](auto& from) {
        detail::report(values, evaluate_all(steps, from, at_most, hooks), steps.metrics(), "val_");
      });
  }

  template <class Source, class... Options>
  evaluation evaluate_checked(Source& source, Options&... options) {
    erased_executor executor(executor_);
    step_runner steps(executor, own_rows_);
    evaluation out;
    with_hooks(
        executor, steps.time,
        [&](const detail::hook_list& hooks) {
          detail::report(out, evaluate_all(steps, source, validation_steps(0), hooks), steps.metrics(), "");
        },
        options...);
    return out;
  }

  /// all_batches(predict_batch) calls predict_batch(number of samples, compute) for each batch, whose hooks are called around it.
  template <class... Options>
  void predict_checked(const auto& all_batches, [[maybe_unused]] Options&... options) {
    if constexpr (sizeof...(Options) == 0) {
      all_batches([](int, const auto& compute) { compute(); });
    } else {
      erased_executor executor(executor_);
      step_runner steps(executor, own_rows_);
      with_hooks(
          executor, steps.time,
          [&](const detail::hook_list& hooks) {
            pass_state state;
            hooks(&detail::hook_calls::predict_begin, state);
            all_batches([&](int samples, const auto& compute) {
              hooks(&detail::hook_calls::predict_batch_begin, state);
              compute();
              ++state.batches;
              state.samples += samples;
              hooks(&detail::hook_calls::predict_batch_end, state);
            });
            hooks(&detail::hook_calls::predict_end, state);
          },
          options...);
    }
  }
};

template <class... Arguments>
trainer(Arguments...)
    -> trainer<typename detail::deduced_program<Arguments...>::program, typename detail::deduced_program<Arguments...>::strategy>;

/// The type of trainer{...} if its arguments are wrong. It emits a single diagnostic and accepts any call, so that no further
/// errors follow.
template <class Network, class Sentence, int Values>
class trainer<detail::refused_program<Sentence, Network, Values>, void> {
  static_assert(detail::diagnosed<Sentence>[0]);

 public:
  using value_type = float;
  using network = Network;

  explicit trainer(const auto&...) {}
  history fit(const auto&...) { return {}; }
  bool serve() { return false; }
  detail::evaluated<Values> evaluate(const auto&...) { return {}; }
  predictions<float, detail::output_shape_or_none<Network>> predict(const auto&...) { return {}; }
  std::array<metric_sum, 2> train_step(const auto&...) { return {}; }
  std::span<float> parameters() const { return {}; }
  void set_parameters(const auto&...) {}
  void adapt(const auto&...) {}
  void save_weights(const auto&...) const {}
  void load_weights(const auto&...) {}
  double learning_rate() const { return 0; }
  void set_learning_rate(double) {}
  void reset_optimizer() {}
  void set_trainable(const auto&...) {}
  bool is_trainable(const auto&...) const { return true; }
  bool is_chief() const { return true; }
};

namespace detail {
template <class T>
inline constexpr bool is_refused_trainer_v = false;
template <class Program>
inline constexpr bool is_refused_trainer_v<trainer<Program, void>> = true;
// The argument is any type with this property, since print_plan<network>(out) must not look for a conversion of out to
// trainer<network, void>, which would emit its diagnostic.
template <class T>
concept refused_trainer = is_refused_trainer_v<T>;

struct layers_of_trainer {
  static auto frozen_elements(const auto& model) { return model.layers_.elements(); }
};
}  // namespace detail

/// The table of layers, shapes and parameters, as Keras prints it.
std::string summary(const detail::refused_trainer auto&) { return {}; }
void print_plan(const detail::refused_trainer auto&, const auto&...) {}
template <class Program, class Strategy>
  requires(!std::is_void_v<Strategy>)
std::string summary(const trainer<Program, Strategy>& model) {
  return summary_of<typename Program::network>({.element_size = int(sizeof(typename Program::value_type)),
                                                .frozen_parameters = detail::layers_of_trainer::frozen_elements(model)});
}

}  // namespace strata
