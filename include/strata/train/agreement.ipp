// Definitions of agreement.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::string to_string(const plan_of_fit& p) {
  return formatted("batches of %.0f, %.0f in a pass, epochs %.0f to %.0f, steps_per_epoch %.0f", p.batch_size, p.batches,
                   p.first_epoch, p.epochs, p.steps);
}

STRATA_FUNCTION void refuse_other_plan(const plan_of_fit& first, const plan_of_fit& other, std::size_t rank,
                                       std::string_view order) {
  if (first == other) return;
  std::string differences;
  const auto compare = [&](const char* what, double here, double there) {
    if (here != there)
      differences += formatted("%s %s %g there and %g in process 0", differences.empty() ? ":" : ",", what, there, here);
  };
  compare("samples in a batch", first.batch_size, other.batch_size);
  compare("batches in a pass", first.batches, other.batches);
  compare("initial_epoch", first.first_epoch, other.first_epoch);
  compare("epochs", first.epochs, other.epochs);
  compare("steps_per_epoch", first.steps, other.steps);
  compare("learning_rate", first.learning_rate, other.learning_rate);
  if (first.weights != other.weights)
    differences += text_of({differences.empty() ? ": " : ", ", "other weights, which all processes have to load or set alike"});
  if (first.order != other.order)
    differences += text_of({differences.empty() ? ": " : ", ",
                            text_of({"other samples, another order or other frozen layers, here '", order, "'"})});
  if (first.arithmetic != other.arithmetic)
    differences += text_of({differences.empty() ? ": " : ", ",
                            text_of({"a build of strata that computes differently, here '", text_of_arithmetic(), "'"})});
  throw_error({"fit: process ", rank, " does not train as process 0 does", differences});
}

STRATA_FUNCTION void refuse_other_plans(any_process_group& group, plan_of_fit mine, std::string_view order) {
  if (group.is_late()) return;  // the others are training: late_workers compares the plans
  mine.order = as_double(hash_of(order));
  mine.arithmetic = as_double(hash_of(text_of_arithmetic()));
  const gathered all(group, mine);
  for (std::size_t r = 1; r < all.size(); ++r) refuse_other_plan(all[0], all[r], r, order);
}

STRATA_FUNCTION void refuse_other_batches(any_process_group& group, long batches, std::string_view order) {
  struct evaluated {
    double batches, order;
  };
  const gathered all(group, evaluated{double(batches), as_double(hash_of(order))});
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r].batches != all[0].batches)
      throw_error({"evaluate: process ", r, " has ", all[r].batches, " batches, but process 0 has ", all[0].batches});
    if (all[r].order != all[0].order)
      throw_error({"evaluate: process ", r, " has other samples than process 0, or another order, here '", order, "'"});
  }
}

STRATA_FUNCTION void share_decisions(any_process_group& group, training_state& state) {
  struct decisions {
    double stops, sets_rate, rate;
  };
  const gathered all(group, decisions{double(state.stop_training), double(state.new_learning_rate.has_value()),
                                      state.new_learning_rate.value_or(0)});
  for (std::size_t r = 0; r < all.size(); ++r) state.stop_training = state.stop_training || all[r].stops != 0;
  if (all.size() > 1) state.new_learning_rate = all[0].sets_rate != 0 ? std::optional(all[0].rate) : std::nullopt;
}

}  // namespace strata::detail
