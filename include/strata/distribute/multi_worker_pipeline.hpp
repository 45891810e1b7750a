// multi_worker_pipeline: the layers of one network on the workers of a cluster. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <strata/resolvers/any_resolver.hpp>  // first: its diagnostic then has few lines

#include <strata/distribute/workers.hpp>
#include <strata/program/stages/pipelined.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <strata/synchronous/stage_executor.hpp>

namespace strata {

/// `multi_worker_pipeline<balanced<4>, micro_batches<8>>{tf_config()}`: pipeline, each place of which is a worker. See workers.
template <class Cut, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward,
          class Backend = core::default_backend>
using multi_worker_pipeline = workers<core::pipelines<1, core::pipelined<Cut, MicroBatches, Schedule>, Backend>>;

}  // namespace strata
