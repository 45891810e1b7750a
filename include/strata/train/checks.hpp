// Checks of a batch, each with an error message of one sentence.
#pragma once
#include <cmath>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/row_tables.hpp>
#include <string>

namespace strata::detail {

/// A label outside the classes would read beyond the predictions.
template <class T>
void check_labels(const samples<T>& batch, row_range rows, int classes, long samples_before) {
  for (int n = rows.begin; n < rows.end; ++n)
    if (batch.labels()[n] < 0 || batch.labels()[n] >= classes)
      throw error({"sample ", samples_before + n, " has the label ", batch.labels()[n], ", but the network has ", classes,
                   " classes: labels must be 0 to ", classes - 1});
}

/// An index outside the rows of an embedding would read beyond its table.
template <class Program>
void check_indices(const samples<typename Program::value_type>& batch, row_range rows, long samples_before) {
  refuse_other_rows<Program>(batch.x(), rows, samples_before);
}

/// Before anything is computed: the labels, and the indices of embeddings, of some rows of a batch.
template <class Program>
void check_batch(const samples<typename Program::value_type>& batch, row_range rows, long samples_before) {
  if constexpr (Program::loss::labels == label_kind::sparse)
    check_labels(batch, rows, Program::network::output_shape.last(), samples_before);
  check_indices<Program>(batch, rows, samples_before);
}

/// The loss of a batch is nan or infinite: throws an error that says where that comes from.
template <class T>
[[noreturn, gnu::cold]] void report_bad_loss(double loss, const samples<T>& batch, row_range rows, int input_size,
                                             int target_size, int epoch, long step, long samples_before) {
  const std::string where = text_of({"epoch ", epoch + 1, ", step ", step + 1, ": the loss is ", loss});
  for (int n = rows.begin; n < rows.end; ++n) {
    for (int i = 0; i < input_size; ++i)
      if (!std::isfinite(batch.x()[long(n) * input_size + i]))
        throw error({where, ", because element ", i, " of the input of sample ", samples_before + n, " is ",
                     double(batch.x()[long(n) * input_size + i])});
    for (int i = 0; batch.targets() && i < target_size; ++i)
      if (!std::isfinite(batch.targets()[long(n) * target_size + i]))
        throw error({where, ", because element ", i, " of the target of sample ", samples_before + n, " is ",
                     double(batch.targets()[long(n) * target_size + i])});
  }
  const bool saw_all = rows.begin == 0 && rows.end == batch.count;
  throw error({where, ", although all inputs ", saw_all ? "" : "of this process ",
               "are finite: lower the learning rate, or clip the gradient (clipnorm, global_clipnorm)"});
}

}  // namespace strata::detail
