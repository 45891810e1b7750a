// Checks of a batch, each with its own error message.
#pragma once
#include <cmath>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/program/row_tables.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace strata::detail {

/// " for kind"; empty for an end without a name.
inline std::string for_end(std::string_view name) { return name.empty() ? std::string() : text_of({" for ", name}); }

/// Labels are checked because one outside the classes would read beyond the predictions.
inline void check_labels(const std::int32_t* labels, row_range rows, int classes, const sample_names& names,
                         std::string_view output = {}) {
  for (int n = rows.begin; n < rows.end; ++n)
    if (labels[n] < 0 || labels[n] >= classes)
      throw_error({names.of(n), " has the label ", labels[n], for_end(output), ", but the network has ", classes,
                   " classes: labels must be 0 to ", classes - 1});
}

/// Throws strata_error if the batch has no samples, or lacks an array that the network or a loss reads.
template <class Program>
void check_arrays(const samples<typename Program::value_type>& batch) {
  if (batch.count < 1) throw_error({"a batch of ", batch.count, " samples: a step needs at least one"});
  for (int k = 0; k < ends_of_program<Program>.input_count; ++k)
    if (!batch.inputs[k]) throw_error({"the batch has no inputs", for_end(names_of_ends<Program>.inputs[k])});
  [&]<class... Output>(type_list<Output...>) {
    [[maybe_unused]] int k = 0;
    const auto check = [&](label_kind kind) {
      const truth_rows<typename Program::value_type>& truth = batch.truths[k];
      const std::string_view output = names_of_ends<Program>.outputs[k++];
      if (kind == label_kind::sparse && !truth.labels)
        throw_error({"the batch has no labels", for_end(output), ", which the loss needs"});
      if (kind == label_kind::dense && !truth.targets)
        throw_error({"the batch has no targets", for_end(output), ", which the loss needs"});
    };
    (check(Output::loss::labels), ...);
  }(typename Program::outputs{});
}

/// Checks the labels and the embedding indices of some rows of a batch, before anything is computed.
template <class Program>
void check_rows(const samples<typename Program::value_type>& batch, row_range rows, const sample_names& names) {
  [&]<class... Output>(type_list<Output...>) {
    constexpr const auto& t = tape_of<typename Program::items>;
    static constexpr tape_ends ends = ends_of(t);
    [[maybe_unused]] int k = 0;
    const auto check = [&](label_kind kind) {
      if (kind == label_kind::sparse)
        check_labels(batch.truths[k].labels, rows, t.nodes[ends.losses[k]].out.last(), names, names_of_ends<Program>.outputs[k]);
      ++k;
    };
    (check(Output::loss::labels), ...);
  }(typename Program::outputs{});
  refuse_other_rows<Program>(batch, rows, names);
}

/// The end of a message about a step whose loss is not finite: most strategies have already applied its gradient.
inline constexpr const char* after_bad_step =
    "; weights and moments of the optimizer may be ruined: load weights and call reset_optimizer() before the next fit";

/// Throws strata_error if one of the `size` elements of sample n is nan or infinite.
template <class T>
void report_not_finite(const T* array, int n, long size, const std::string& where, const char* what, std::string_view end,
                       const sample_names& names) {
  for (long i = 0; array && i < size; ++i)
    if (!std::isfinite(array[n * size + i]))
      throw_error({where, ", because element ", i, " of the ", what, for_end(end), " of ", names.of(n), " is ",
                   double(array[n * size + i]), after_bad_step});
}

/// Guards against a fit within a fit: a second object for the same trainer throws strata_error.
class running_fit {
  bool& runs_;

 public:
  explicit running_fit(bool& runs) : runs_(runs) {
    if (std::exchange(runs, true))
      throw_error("fit: a callback calls fit of the trainer that runs it; it may call train_step, evaluate and predict");
  }
  running_fit(const running_fit&) = delete;
  running_fit& operator=(const running_fit&) = delete;
  ~running_fit() { runs_ = false; }
};

/// Reports a bad loss of a step whose batch is no longer available. step: from 1.
[[noreturn, gnu::cold, gnu::noinline]] inline void report_bad_loss_of_step(int epoch, long step) {
  throw_error({"epoch ", epoch + 1, ", step ", step,
               ": the loss is nan or infinite: look for elements of its batch that are not finite (check_numerics names the "
               "layer and the sample), "
               "lower the learning rate, or clip the gradient (clipnorm, global_clipnorm)",
               after_bad_step});
}

/// Reports that the loss of a batch is nan or infinite, and where that comes from.
template <class T>
[[noreturn, gnu::cold]] void report_bad_loss(double loss, const samples<T>& batch, row_range rows, const end_sizes& ends,
                                             const end_names& named, int epoch, long step, const sample_names& names,
                                             bool is_first_of_fit) {
  const std::string where = text_of({"epoch ", epoch + 1, ", step ", step + 1, ": the loss is ", loss});
  for (int n = rows.begin; n < rows.end; ++n) {
    for (int k = 0; k < ends.input_count; ++k)
      report_not_finite(batch.inputs[k], n, ends.inputs[k], where, "input", named.inputs[k], names);
    for (int k = 0; k < ends.output_count; ++k)
      report_not_finite(batch.truths[k].targets, n, ends.outputs[k], where, "target", named.outputs[k], names);
  }
  const bool saw_all = rows.begin == 0 && rows.end == batch.count;
  throw_error({where, ", although all inputs ", saw_all ? "" : "of this process ",
               "are finite: ", is_first_of_fit ? "an earlier fit may have left weights or moments that are not; otherwise " : "",
               "lower the learning rate, or clip the gradient (clipnorm, global_clipnorm)", after_bad_step});
}

}  // namespace strata::detail
