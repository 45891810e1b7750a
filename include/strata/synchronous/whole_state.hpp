// The state of a training whose parameters and slots are whole in each process.
#pragma once

namespace strata::detail {

/// Used in place of a sliced_state if nothing is divided.
struct whole_state {
  static void prepare_messages(const auto&) {}
  static void keep_slots(const auto&, const auto&) {}
  static void divide_parameters(const auto&) {}
  static bool collect_parameters(const auto&, const auto&) { return false; }
  static void refuse_parts_of_parameters(const auto&) {}
  static void fetch(const auto&, int) {}
  static void await(const auto&, const auto&, int) {}
  static void await_again(const auto&, int) {}
};

}  // namespace strata::detail
