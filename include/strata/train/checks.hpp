// What is wrong with a batch, said in one sentence.
#pragma once
#include <cmath>
#include <string>
#include <strata/base/error.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/row_tables.hpp>

namespace strata::detail {

/// A label that is no class would read beyond the predictions.
template <class T>
void check_labels(const samples<T>& batch, row_range rows, int classes, long samples_before) {
  for (int n = rows.begin; n < rows.end; ++n)
    if (batch.labels[n] < 0 || batch.labels[n] >= classes)
      throw error("sample " + std::to_string(samples_before + n) + " has the label " + std::to_string(batch.labels[n]) +
                  ", but the network has " + std::to_string(classes) + " classes: labels must be 0 to " + std::to_string(classes - 1));
}

/// A number that is no row would read beyond a table.
template <class Program>
void check_numbers(const samples<typename Program::value_type>& batch, row_range rows, long samples_before) {
  refuse_other_rows<Program>(batch.x, rows, samples_before);
}

/// Before anything is computed: what is wrong with the labels and numbers of some samples of a batch.
template <class Program>
void check_batch(const samples<typename Program::value_type>& batch, row_range rows, long samples_before) {
  if constexpr (Program::loss::labels == label_kind::sparse)
    check_labels(batch, rows, Program::network::output_shape.last(), samples_before);
  check_numbers<Program>(batch, rows, samples_before);
}

/// Called once the loss of a batch is nan or infinite: says where that comes from.
template <class T>
[[noreturn, gnu::cold]] void report_bad_loss(double loss, const samples<T>& batch, row_range rows, int input_size, int target_size, int epoch, long step,
                                             long samples_before) {
  const std::string where = "epoch " + std::to_string(epoch + 1) + ", step " + std::to_string(step + 1) + ": the loss is " + std::to_string(loss);
  for (int n = rows.begin; n < rows.end; ++n) {
    for (int i = 0; i < input_size; ++i)
      if (!std::isfinite(batch.x[long(n) * input_size + i]))
        throw error(where + ", because element " + std::to_string(i) + " of the input of sample " + std::to_string(samples_before + n) +
                    " is " + std::to_string(double(batch.x[long(n) * input_size + i])));
    for (int i = 0; batch.targets && i < target_size; ++i)
      if (!std::isfinite(batch.targets[long(n) * target_size + i]))
        throw error(where + ", because element " + std::to_string(i) + " of the target of sample " + std::to_string(samples_before + n) +
                    " is " + std::to_string(double(batch.targets[long(n) * target_size + i])));
  }
  const bool saw_all = rows.begin == 0 && rows.end == batch.count;
  throw error(where + ", although all inputs " + (saw_all ? "" : "of this process ") +
              "are finite: lower the learning rate, or clip the gradient (clipnorm, global_clipnorm)");
}

}  // namespace strata::detail
