// multi_worker_pipeline: the layers of one network on the workers of a cluster. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <strata/distribute/connect_divided_workers.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/distribute/pipeline_among.hpp>
#include <utility>

namespace strata {

/// `multi_worker_pipeline<tf_config, balanced<4>, micro_batches<8>>{}`: pipeline_among the workers of a cluster, of whom there
/// are as many as places; the chief, or worker 0, has the first stage. Each runs the same program on the same data set. Throws as
/// multi_worker_mirrored does; elastic_options are refused, because each worker has some of the layers.
template <class Resolver, class Cut = detail::nothing, class MicroBatches = micro_batches<8>,
          class Schedule = one_forward_one_backward, class Backend = default_backend>
struct multi_worker_pipeline {
  using communicator = control::worker_connections;
  using backend = split_among<Backend, pipelined<Cut, MicroBatches, Schedule>, communicator>;
  static constexpr auto name = "multi_worker_pipeline";
  Resolver resolver{};
  multi_worker_options options{};

  template <class Program>
  using executor = stage_executor<Program, backend, communicator>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    communicator processes = detail::connect_divided_workers<Program>(*this, optimizer, seed);
    return {std::move(optimizer), seed, options.compute, std::move(processes)};
  }
};

/// Of what is no resolver.
template <class Resolver, class Cut, class MicroBatches, class Schedule, class Backend>
  requires(!cluster_resolver<Resolver>)
struct multi_worker_pipeline<Resolver, Cut, MicroBatches, Schedule, Backend> : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<typename detail::resolver_verdict<Resolver>::type>()));
  using detail::refusing<one_device<>>::refusing;
};
template <class Given, const reason& Why, class Cut, class MicroBatches, class Schedule, class Backend>
struct multi_worker_pipeline<detail::refused_arguments<Given, Why>, Cut, MicroBatches, Schedule, Backend>
    : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<one_device<>>::refusing;
};
inline constexpr reason write_multi_worker_pipeline_with_resolver_cut_and_micro_batches_in_angle_brackets{
    "the parts of a pipeline are template arguments: multi_worker_pipeline<tf_config, balanced<2>, micro_batches<8>>{}"};
template <class... Given>
multi_worker_pipeline(Given...) -> multi_worker_pipeline<
    detail::refused_arguments<type_list<Given...>,
                              write_multi_worker_pipeline_with_resolver_cut_and_micro_batches_in_angle_brackets>,
    void>;

}  // namespace strata
