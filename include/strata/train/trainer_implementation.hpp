// What the functions of trainer do with arguments that are checked. It is the part of a training that depends on the types of
// callbacks and data: what does not is in fit_loop.hpp and step_runner.hpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <strata/base/exceptions.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/program/executor.hpp>
#include <strata/train/adapt.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/fit_loop.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/fit_verdict.hpp>
#include <strata/train/hook_calls.hpp>
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
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// Defined in train/weights_file.hpp, which costs two seconds of compilation that most programs need not spend.
template <class Network, class T>
struct please_include_strata_train_weights_file;
}  // namespace core

namespace detail {

/// Defined in train/input_gradients.hpp.
template <class Network, class Precision>
struct please_include_strata_train_input_gradients;
/// Defined in train/fit_session.hpp, which only the headers of session callbacks include.
template <class Program, class Executor>
class fit_in_program;
/// Defined in train/fitted_model.hpp, which callbacks include whose hooks take a fitted_model.
template <class Program, class Executor>
class please_include_strata_train_fitted_model;

/// What a trainer has, and the parts of which its functions are made.
template <class Program, class Strategy>
class training {
  using T = typename Program::value_type;
  using network = typename Program::network;
  using executor_type = typename Strategy::template executor<Program>;
  using erased_type = erased_executor<Program, executor_type>;
  using evaluation = evaluated<reported_metrics<Program>::numbers>;

 public:
  executor_type executor;
  row_choice own_rows = executor.own_rows();
  std::uint64_t seed;
  trainable_layers<network> layers;
  [[no_unique_address]] loss_weights<Program> factors;
  [[no_unique_address]] weighted_batch<Program> batch_of_step;
  bool is_in_fit = false;
  std::shared_ptr<void> gradient_engines{};  // of trainer::gradients, from its first call on

  template <class... Extra>
  explicit training(typename Program::optimizer&& optimizer, const Extra&... extra)
      : executor(pick_or_make<Strategy>(extra...).template make<Program>(
            (strata::core::validate<T>(optimizer), std::move(optimizer)), pick(strata::seed(1), extra...).value)),
        seed(pick(strata::seed(1), extra...).value) {}

  void predict(std::span<const T> x, std::span<T> out) {
    predict_in_memory(x, out, [&](const samples<T>& piece, T* to) { executor.predict(piece, to); });
  }

  metric_sums<Program> train_step(const samples<T>& batch) {
    check_arrays<Program>(batch);
    executor.prepare(batch.count, purpose::training);
    check_rows<Program>(batch, own_rows ? own_rows(batch.count) : row_range{0, batch.count}, sample_names());
    return factors.reported(step_result<Program>(executor.train_step(batch_of_step.of(batch, factors))).get());
  }

  void set_parameters(std::span<const T> values) {
    const std::span<T> own = executor.parameters();
    if (values.size() != own.size())
      throw_error(text_of({"set_parameters: got ", values.size(), " values, but parameters() has ", own.size(),
                           " with the padding between arrays"}));
    std::copy_n(values.data(), values.size(), own.data());
    executor.parameters_changed();
  }

  /// Runs f. Before an exception leaves it, the processes that train with this one receive its text, the reason why this process
  /// may end. A process that trains again withdraws it.
  void telling_errors(const auto& f) {
    auto& group = executor.group();
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
    predict_in_pieces<Program>(x, out, [&](int most) { executor.prepare(most, purpose::inference); }, predict_piece);
  }

  auto batches_to_train(const auto& samples, data::detail::slice part, const batch_size& size, const shuffle& order) {
    if constexpr (executor_type::traits.shares_data)
      return detail::batches_to_train<T>(samples, part, size, order, seed, executor.share_of_data());
    else
      return detail::batches_to_train<T>(samples, part, size, order, seed);
  }

  /// Trains on samples in memory, which the options cut into batches.
  template <class Samples, class... Options>
  training_history fit_samples(const Samples& samples, Options&... options) {
    const batch_size size = pick(batch_size(32), options...);
    constexpr bool splits = (std::is_same_v<std::remove_const_t<Options>, validation_split> || ...);
    data::detail::slice part;
    if constexpr (splits) part.count = pick(validation_split(0), options...).to_train(samples.size());
    auto batches = batches_to_train(samples, part, size, pick(shuffle(true), options...));
    if constexpr (splits) {
      validation held_back(batches_in_order<T>(samples, {.first = part.count}, size));
      return fit_on(batches, held_back, options...);
    } else {
      return fit_on(batches, options...);
    }
  }

  /// The option as fit_checked reads it: with batches instead of arrays.
  template <class Option>
  static decltype(auto) prepared(Option& option, [[maybe_unused]] int size) {
    const auto batches = [&](auto samples) { return validation(batches_in_order<T>(std::move(samples), {}, batch_size(size))); };
    if constexpr (requires { option.x, option.y, option.weights; } && is_validation<std::remove_const_t<Option>>)
      return batches(weighted("validation", samples_of_arrays<Program>("validation", option.x, option.y), option.weights));
    else if constexpr (requires { option.x, option.y; } && is_validation<std::remove_const_t<Option>>)
      return batches(samples_of_arrays<Program>("validation", option.x, option.y));
    else if constexpr (requires { option.columns; } && is_validation<std::remove_const_t<Option>>)
      return batches(
          std::apply([](const auto&... each) { return samples_of_columns<Program>("validation", each...); }, option.columns));
    else
      return (option);
  }

  /// fit and evaluate on a batch_source that the caller has given.
  template <class Source, class... Options>
  training_history fit_source(Source& source, Options&... options) {
    training_history past;
    telling_errors([&] { with_source(source, [&](auto& from) { past = fit_on(from, options...); }); });
    return past;
  }
  template <class Source, class... Options>
  evaluation evaluate_source(Source& source, Options&... options) {
    evaluation out;
    telling_errors([&] { with_source(source, [&](auto& from) { out = evaluate_checked(from, options...); }); });
    return out;
  }
  /// Evaluates samples in memory.
  template <class Samples, class... Options>
  evaluation evaluate_samples(Samples samples, Options&... options) {
    auto batches = batches_in_order<T>(std::move(samples), {}, pick(batch_size(32), options...));
    evaluation out;
    with_source(batches, [&](auto& from) { out = evaluate_checked(from, options...); });
    return out;
  }

  template <class Source, class... Options>
  training_history fit_on(Source& source, Options&... options) {
    [[maybe_unused]] const int size = batch_size_of(source);
    const auto run = [&](auto&&... ready) { return fit_checked(source, ready...); };
    if constexpr (requires { typename Strategy::fit_callback; })
      return run(prepared(options, size)..., typename Strategy::fit_callback());
    else
      return run(prepared(options, size)...);
  }

  /// The notice of speed_notice, if the kernels of this program run on the host.
  static std::string_view notice_of_speed() {
    if constexpr (requires { requires device_of<typename executor_type::backend>::is_host; }) return speed_notice();
    return {};
  }

  std::string notice_of_layers([[maybe_unused]] verbosity how) const {
    if constexpr (has_normalization<network>()) {
      if (how == verbosity::off || !executor.group().is_chief()) return {};
      STRATA_TRY { return notice_of_normalization<network>(executor.parameters()); }
      STRATA_CATCH(const divided_parameters& no_process_has_all) {}
    }
    return {};
  }

  template <class Source, class... Options>
  [[gnu::cold]] training_history fit_checked(Source& source, Options&... options) {
    const running_fit running(is_in_fit);
    auto stream = stream_to_train<Program>(executor, source, own_rows, pick(class_weight(), options...).empty());
    erased_type erased(executor, factors);
    step_runner<T> steps(erased, own_rows);
    fit_loop<T> loop(erased, steps, stream,
                     {.first_epoch = pick(initial_epoch(0), options...).number,
                      .epochs = pick(epochs(1), options...).count,
                      .batch_size = batch_size_of(source),
                      .steps = pick(steps_per_epoch(0), options...).count,
                      .execution = pick(steps_per_execution(1), options...).count,
                      .how = pick(verbosity::bar, options...),
                      .validates = (is_validation<std::remove_const_t<Options>> || ...),
                      .may_get_pixels = computes_with_inputs<network>(),
                      .about_layers = notice_of_layers(pick(verbosity::bar, options...)),
                      .frozen = layers.text(),
                      .notice = notice_of_speed()});
    (weigh_classes(steps, options), ...);
    const int every = pick(validation_freq(1), options...).epochs;
    const auto at_most = pick(validation_steps(0), options...);
    if (every < 1) throw_error({"fit: validation_freq(", every, "): it must be at least 1"});
    if (at_most.count < 0) throw_error({"fit: validation_steps(", at_most.count, "): it must be at least 0"});
    return with_hooks(
        erased, steps.time,
        [&](hook_list hooks) {
          hooks.in_fit = true;
          const auto validate = [&](logs& values) {
            loop.state.skips_validation = (loop.state.epoch + 1) % every != 0;
            if (!loop.state.skips_validation) (add_validation(steps, options, at_most, hooks, values), ...);
          };
          if constexpr ((session_callback<Options> || ...)) {
            erased_membership membership(executor.group());
            fit_in_program<Program, executor_type> fit(executor, stream, loop.at, loop.state, loop.plan, layers.text(), hooks,
                                                       factors);
            training_session session{fit, erased.group(), membership, loop.state};
            hooks.session = &session;
            return loop.run(hooks, validate);
          } else {
            return loop.run(hooks, validate);
          }
        },
        options...);
  }

  template <class Option>
  static void weigh_classes([[maybe_unused]] step_runner<T>& steps, [[maybe_unused]] const Option& option) {
    if constexpr (std::is_same_v<Option, class_weight>)
      steps.weigh(0, option);
    else if constexpr (is_classes_at<Option>)
      steps.weigh(std::size_t(index_in<typename Option::node>(typename Program::output_nodes{})), option.weights);
  }

  /// Returns f(the hooks of the callbacks among some options).
  template <class... Options>
  auto with_hooks([[maybe_unused]] erased_type& erased, [[maybe_unused]] const time_split& time, const auto& f,
                  Options&... options) {
    if constexpr (((hooks::any_of_model<Options> || callback_with_arrays<Options>) || ...)) {
      please_include_strata_train_fitted_model<Program, executor_type> model(executor, erased.group(), time);
      return f(hook_list{hooks_of<Options>(options, &model).get()...});
    } else {
      return f(hook_list{hooks_of<Options>(options, nullptr).get()...});
    }
  }

  template <class Source>
  [[gnu::cold]] std::vector<metric_sum> evaluate_all(step_runner<T>& steps, Source& source, validation_steps at_most,
                                                     const hook_list& hooks) {
    auto stream = stream_to_read<Program>(source, own_rows, executor.writers());
    return steps.evaluate(stream, batch_size_of(source), at_most.count, hooks);
  }

  template <class Option>
  [[gnu::cold]] void add_validation(step_runner<T>& steps, Option& option, validation_steps at_most, const hook_list& hooks,
                                    logs& values) {
    if constexpr (is_validation<std::remove_cvref_t<Option>>)
      with_source(option.source,
                  [&](auto& from) { report(values, evaluate_all(steps, from, at_most, hooks), steps.metrics(), "val_"); });
  }

  template <class Source, class... Options>
  evaluation evaluate_checked(Source& source, Options&... options) {
    erased_type erased(executor, factors);
    step_runner<T> steps(erased, own_rows);
    evaluation out;
    with_hooks(
        erased, steps.time,
        [&](const hook_list& hooks) {
          report(out, evaluate_all(steps, source, validation_steps(0), hooks), steps.metrics(), "");
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
      erased_type erased(executor, factors);
      step_runner<T> steps(erased, own_rows);
      with_hooks(
          erased, steps.time,
          [&](const hook_list& hooks) {
            pass_state state;
            hooks(&hook_calls::predict_begin, state);
            all_batches([&](int samples, const auto& compute) {
              hooks(&hook_calls::predict_batch_begin, state);
              compute();
              ++state.batches;
              state.samples += samples;
              hooks(&hook_calls::predict_batch_end, state);
            });
            hooks(&hook_calls::predict_end, state);
          },
          options...);
    }
  }
};

struct layers_of_trainer {
  static auto frozen_elements(const auto& model) { return model.training_.layers.elements(); }
};

}  // namespace detail

}  // namespace strata
