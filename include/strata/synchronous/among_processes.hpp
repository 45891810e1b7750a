// The synchronous executor with all that it needs among several processes. A program of one process does not compile this.
#pragma once
#include <strata/exchange/collective_operations.hpp>
#include <strata/exchange/gradient_buckets.hpp>
#include <strata/exchange/process_reduction.hpp>
#include <strata/exchange/zero/sliced_state.hpp>
#include <strata/synchronous/synchronous.hpp>
