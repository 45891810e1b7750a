// pipeline_among: the layers of one network on several processes, which compute different micro-batches at the same time.
#pragma once
#include <strata/distribute/among.hpp>
#include <strata/program/stages/by_device.hpp>
#include <strata/program/stages/pipelined.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <strata/synchronous/stage_executor.hpp>

namespace strata {

/// `pipeline_among<C, balanced<4>, micro_batches<8>>{processes}`: pipeline, where each place is a process. See among.
template <class C, class Cut, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward,
          class Backend = core::default_backend>
using pipeline_among = core::among<core::pipelines<1, core::pipelined<Cut, MicroBatches, Schedule>, Backend>, C>;

/// placed, where each device is a process: device k is process k.
template <class C, int Devices, class Backend = core::default_backend>
using placed_among = core::among<core::pipelines<1, core::by_device<Devices>, Backend>, C>;

}  // namespace strata
