// What fit and evaluate can be told, in any order: epochs(5), steps_per_epoch(100), validation(test), verbose::line.
#pragma once
#include <ranges>
#include <strata/concepts/batch_source.hpp>

namespace strata {

/// How many times fit goes through the data.
struct epochs {
  int count;
  constexpr explicit epochs(int n) : count(n) {}
};

/// The number of the first epoch, for a training that goes on.
struct initial_epoch {
  int number;
  constexpr explicit initial_epoch(int n) : number(n) {}
};

/// An epoch is this many batches; the data is taken up where the last epoch left it, and from its start when it ends.
struct steps_per_epoch {
  long count;
  constexpr explicit steps_per_epoch(long n) : count(n) {}
};

/// Evaluate on this source after each epoch.
template <batch_source Source>
struct validation {
  Source source;
  constexpr explicit validation(Source s) : source(std::move(s)) {}
};

/// The seed of weights and dropout.
struct seed {
  std::uint64_t value;
  constexpr explicit seed(std::uint64_t v) : value(v) {}
};

}  // namespace strata
