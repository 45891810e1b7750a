// trainer{graph<...>{}, optimizer, compare<node>(loss, metrics...)..., strategy}: the trainer of a graph, whose inputs and
// outputs have names.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/node_name.hpp>
#include <strata/data/core/column.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/columns_stream.hpp>
#include <strata/train/columns_verdict.hpp>
#include <strata/train/deduced_graph.hpp>
#include <strata/train/loss_weights.hpp>
#include <strata/train/output_weights.hpp>
#include <strata/train/predicted_graph.hpp>
#include <strata/train/trained_model.hpp>
#include <strata/train/trainer.hpp>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

/// Trains a graph. Its data are columns, each with the name of an input or an output: `of<image>(pixels)`, or batches of a data
/// set with columns.
///   trainer model{graph<kind, box>{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}, accuracy{}),
///                                             compare<box>(mean_squared_error{}, loss_weight(0.2))};
///   model.fit(of<image>(images), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(5));
///   const auto [kinds, boxes] = model.predict(of<image>(images), of<tags>(words));
/// An output that is not compared is only predicted. A graph of several outputs reports `loss`, the sum of all losses with their
/// weights, then, if several outputs have a loss, `kind_loss`, `box_loss`, without them, then `kind_accuracy`, in the order of
/// the graph's outputs. A snapshot of a training has the weights of the losses, and a training that resumes from it continues
/// with these.
template <core::graph_program Program, class Strategy>
class trainer<Program, Strategy> : public core::trained_model<Program, Strategy> {
  static_assert(sizeof(typename Strategy::template executor<Program>) &&
                detail::diagnosed<detail::trainer_verdict<Program, Strategy>>[0]);
  using model = core::trained_model<Program, Strategy>;
  using model::training_;
  using typename model::T;
  using evaluation = detail::evaluated<detail::reported_metrics<Program>::numbers>;

 public:
  using model::executor;
  using model::serve;
  using typename model::network;
  /// Predictions of the only output, or a tuple with those of each output, in the order of the graph.
  using predicted = typename detail::predicted_graph<Program>::type;

  /// Throws strata_error if the settings of the optimizer or a loss_weight are invalid.
  template <class... Extra>
  explicit trainer(network, typename Program::optimizer optimizer, const Extra&... extra)
      : model(std::move(optimizer), extra...) {
    using others = detail::filter_t<detail::is_not_compared, Extra...>;
    []<class... Other>(core::type_list<Other...>) {
      static_assert(detail::diagnosed<detail::extras_verdict<Other...>>[0]);
    }(others{});
    (take_weight(extra), ...);
  }

  trainer(trainer&&) = default;
  trainer& operator=(trainer&&) = default;
  trainer(const trainer&) = delete;

  /// Trains on a batch_source with columns, as the trainer of other networks does.
  template <class Source, class... Options>
    requires(!detail::is_column<std::remove_cvref_t<Source>>)
  training_history fit(Source&& source, Options&&... options) {
    using sentence = detail::verdict_with_weights<
        Program, detail::fit_verdict_with<Strategy, Program, std::remove_cvref_t<Source>, Options...>, Options...>;
    static_assert(detail::diagnosed<sentence>[0]);
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      if (!serve()) return training_.fit_source(source, options...);
    return {};
  }

  /// Trains on arrays: a column for each input and each output that is compared, perhaps `of<kind>(sample_weight(w))`, then
  /// options, among them `batch_size(32)`, `shuffle(true)`, `validation_split(0.2)` and `of<kind>(class_weight{{0, 1.0},
  /// {1, 50.0}})`. It also throws strata_error if the sizes of the columns do not match.
  template <class First, class... More>
    requires detail::is_column<std::remove_cvref_t<First>>
  training_history fit(First&& first, More&&... more) {
    using sentence = detail::verdict_on_columns<detail::fit_verdict, Program, std::remove_reference_t<First>,
                                                std::remove_reference_t<More>...>;
    static_assert(detail::diagnosed<sentence>[0]);
    training_history past;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      if (!serve())
        training_.telling_errors([&] {
          detail::split_columns([&](const auto& columns,
                                    auto&... options) { past = training_.fit_samples(samples_of("fit", columns), options...); },
                                first, more...);
        });
    return past;
  }

  /// Loss and metrics over a batch_source with columns; callbacks may follow.
  template <class Source, class... Options>
    requires(!detail::is_column<std::remove_cvref_t<Source>>)
  evaluation evaluate(Source&& source, Options&&... options) {
    using sentence = typename detail::evaluate_verdict<Program, std::remove_cvref_t<Source>, Options...>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      return training_.evaluate_source(source, options...);
    else
      return {};
  }

  /// The overload for arrays: columns, then `batch_size(32)` and callbacks.
  template <class First, class... More>
    requires detail::is_column<std::remove_cvref_t<First>>
  evaluation evaluate(First&& first, More&&... more) {
    using sentence = detail::verdict_on_columns<detail::evaluate_verdict, Program, std::remove_reference_t<First>,
                                                std::remove_reference_t<More>...>;
    static_assert(detail::diagnosed<sentence>[0]);
    evaluation out;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      training_.telling_errors([&] {
        detail::split_columns(
            [&](const auto& columns, auto&... options) {
              out = training_.evaluate_samples(samples_of("evaluate", columns), options...);
            },
            first, more...);
      });
    return out;
  }

  /// The outputs for each sample of arrays: a column for each input. Throws strata_error if the sizes of the columns do not
  /// match.
  template <class... Columns>
    requires(sizeof...(Columns) > 0 && (detail::is_column<std::remove_cvref_t<Columns>> && ...))
  predicted predict(const Columns&... columns) {
    return detail::please_include_strata_train_graph_trainer<Program>::predict(
        [&](int most) { executor().prepare(most, core::purpose::inference); },
        [&](const core::samples<T>& piece, const core::output_rows<T>& to) { executor().predict(piece, to); }, columns...);
  }

  /// The outputs for each sample of a batch_source with columns; those of outputs are ignored.
  template <class Source>
    requires(!detail::is_column<std::remove_cvref_t<Source>>)
  predicted predict(Source&& source) {
    using sentence = typename detail::data_verdict<Program, std::remove_cvref_t<Source>, false>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    predicted out;
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      detail::with_source(source, [&](auto& from) {
        executor().prepare(core::batch_size_of(from), core::purpose::inference);
        auto stream = detail::stream_to_read<Program>(from, {}, {});  // of all rows
        stream.start(0);
        long before = 0;
        for (core::samples<T> batch; stream.next(batch); before += batch.count) {
          core::refuse_other_rows<Program>(batch, {0, batch.count}, detail::names_in_stream<T>(stream, batch.count, before));
          executor().predict(batch, detail::rows_after<Program>(out, std::size_t(before), std::size_t(batch.count)));
        }
      });
    return out;
  }

  /// One update on one batch, for your own training loop: inputs and truths in the order of the tape, or a column for each.
  /// Returns (sum, count) of the loss, then of the loss of each output if several have one, then of the metrics, in the order of
  /// the graph's outputs; at the end, zeros for each output without a loss.
  /// Throws strata_error as the trainer of other networks does.
  core::metric_sums<Program> train_step(const core::samples<T>& batch) { return training_.train_step(batch); }
  template <class... Columns>
    requires(sizeof...(Columns) > 0 && (detail::is_column<std::remove_cvref_t<Columns>> && ...))
  core::metric_sums<Program> train_step(const Columns&... columns) {
    using sentence = typename detail::data_verdict<Program, detail::given_columns<Columns...>, true>::type;
    static_assert(detail::diagnosed<sentence>[0]);
    core::metric_sums<Program> sums{};
    if constexpr (std::is_same_v<sentence, detail::no_complaint>) {
      const auto set = detail::samples_of_columns<Program>("train_step", columns...);
      auto all = detail::batches_in_order<T>(set, {}, batch_size(int(set.size())));
      auto stream = detail::stream_to_read<Program>(all, {}, {});
      stream.start(0);
      core::samples<T> batch;
      stream.next(batch);
      sums = training_.train_step(batch);
    }
    return sums;
  }

  /// The factor of the loss of an output from the next step on. Throws strata_error if it is below 0 or not finite.
  template <class Node>
  void set_loss_weight(double factor) {
    training_.factors.set(number_of_output<Node>(), factor);
  }
  template <class Node>
  double loss_weight_of() const {
    return training_.factors.of_output[std::size_t(number_of_output<Node>())];
  }

 private:
  template <class Node>
  static constexpr int number_of_output() {
    constexpr bool has_loss = detail::index_in<Node>(detail::outputs_with_loss<Program>{}) >= 0;
    constexpr int number = detail::index_in<Node>(typename Program::output_nodes{});
    using sentence =
        std::conditional_t<has_loss, detail::no_complaint,
                           core::no_output<Node, detail::because<reasons::a_loss_weight_is_that_of_an_output_with_a_loss>>>;
    static_assert(detail::diagnosed<sentence>[0]);
    return std::max(number, 0);
  }
  void take_weight(const auto&) {}
  template <class Node, class Loss, class Metrics>
  void take_weight(const core::comparison<Node, Loss, Metrics>& given) {
    set_loss_weight<Node>(given.weight);
  }

  static auto samples_of(const char* call, const auto& columns) {
    return std::apply([&](const auto&... each) { return detail::samples_of_columns<Program>(call, each...); }, columns);
  }
};

}  // namespace strata
