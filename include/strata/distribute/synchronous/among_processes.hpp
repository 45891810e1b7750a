// The synchronous executor with all that it needs among several processes. A program of one process does not compile this.
#pragma once
#include <strata/distribute/synchronous/collective_operations.hpp>
#include <strata/distribute/synchronous/gradient_buckets.hpp>
#include <strata/distribute/synchronous/process_reduction.hpp>
#include <strata/distribute/synchronous/sliced_state.hpp>
#include <strata/distribute/synchronous/synchronous.hpp>
