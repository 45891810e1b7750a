// Options of fit, in any order: epochs(5), steps_per_epoch(100), validation(test), verbose::line.
#pragma once
#include <ranges>
#include <strata/concepts/batch_source.hpp>

namespace strata {

/// How many times fit iterates over the data.
struct epochs {
  int count;
  constexpr explicit epochs(int n) : count(n) {}
};

/// The index of the first epoch, for a training that continues an earlier one.
struct initial_epoch {
  int number;
  constexpr explicit initial_epoch(int n) : number(n) {}
};

/// An epoch is this many batches. The next epoch continues where the last one stopped; at the end of the data it starts again.
struct steps_per_epoch {
  long count;
  constexpr explicit steps_per_epoch(long n) : count(n) {}
};

/// Evaluates on this source after each epoch.
template <class Source>
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
