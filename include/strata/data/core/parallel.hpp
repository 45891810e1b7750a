// The number of threads that make the samples of a batch.
#pragma once
#include <strata/base/error.hpp>
#include <string>

namespace strata::data {

/// The number of threads, or of batches made ahead, is determined by measurements.
struct autotune_t {};
inline constexpr autotune_t autotune{};

/// Option of map and of sources that decode: n threads make the samples of a batch. Order and values do not depend on n.
/// Throws strata_error if n < 1. cf. num_parallel_calls of https://www.tensorflow.org/api_docs/python/tf/data/Dataset#map
class parallel {
 public:
  constexpr explicit parallel(int n) : threads_(n) {
    if (n < 1) throw_error({"parallel: ", n, " threads, it must be at least 1"});
  }
  constexpr explicit parallel(autotune_t) : threads_(0) {}

  /// 0: autotune.
  constexpr int threads() const { return threads_; }

 private:
  int threads_;
};

namespace detail {
/// The number of threads for two stages: the larger one; autotune wins.
constexpr int more_threads(int a, int b) { return a == 0 || b == 0 ? 0 : a < b ? b : a; }
}  // namespace detail

}  // namespace strata::data
