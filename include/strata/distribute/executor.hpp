// What a strategy gives the trainer: the whole step. Nobody asks which one it is.
#pragma once
#include <array>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/program.hpp>

namespace strata {

/// The loss, then each metric, over the global batch.
template <class Program>
using tallies = std::array<tally, std::size_t(1 + length(typename Program::metrics{}))>;

/// `parameters()` is the arena that layout_of_program describes; whoever writes to it calls `parameters_changed()`.
/// It may have more: `own_rows()`, a row_choice, if this process looks at some rows of each batch only; `writers()`,
/// row_writers, if its threads write batches between two steps.
template <class E, class Program>
concept executor = requires(E e, samples<typename Program::value_type> batch, typename Program::value_type* out) {
  e.prepare(64, purpose::training);  // the largest batch that will come, or purpose::inference
  { e.train_step(batch) } -> std::same_as<tallies<Program>>;
  { e.finish() } -> std::same_as<tallies<Program>>;  // end of an epoch: what was still under way
  { e.evaluate_step(batch) } -> std::same_as<tallies<Program>>;
  e.predict(batch, out);
  { e.parameters() } -> std::same_as<std::span<typename Program::value_type>>;
  e.parameters_changed();
  { e.optimizer() } -> std::same_as<typename Program::optimizer&>;
};

}  // namespace strata
