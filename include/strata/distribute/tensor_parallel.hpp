// tensor_parallel: layers of one network divided among several threads.
#pragma once
#include <strata/base/refused_arguments.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/exchange/ranks_of_process.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/synchronous/tensor_executor.hpp>
#include <strata/synchronous/tensor_verdicts.hpp>
#include <utility>

namespace strata {

/// `tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>{}`: each of two ranks has a part of the parameters of the layers
/// that the rules name, with their gradients and optimizer slots, and computes what follows from them; all other layers are
/// computed by every rank. A rank is a thread. compute_options::threads is not used. Where dense layers are by_columns the
/// results are those of one_device with as many leaves, bit for bit (by_columns names the exception); otherwise sums are added in
/// an order that depends on the number of ranks, and on nothing else. Norms of parameters, as lamb and clipnorm take them, are
/// those of the whole ones. https://keras.io/api/distribution/model_parallel
template <int Ranks, class Map = detail::nothing, class Backend = default_backend>
struct tensor_parallel {
  static constexpr auto name = "tensor_parallel";
  static constexpr int ranks = Ranks;
  using map = Map;
  compute_options options{};

  template <class Program>
  using verdict = detail::tensor_verdict<Program, Map, Ranks, 1, Backend>;
  template <class Program>
  using executor = tensor_executor<Program, Map, Ranks, 1, Backend, detail::all_ranks_in_one_process>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, detail::all_ranks_in_one_process(Ranks)};
  }
};

inline constexpr reason the_number_of_ranks_and_the_layout_map_are_template_arguments_in_angle_brackets{
    "the number of ranks and the layout_map are template arguments: tensor_parallel<2, layout_map<rule<\"dense*\", "
    "by_columns>>>{}"};
template <class Given, const reason& Why, class Backend>
struct tensor_parallel<0, detail::refused_arguments<Given, Why>, Backend> : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<one_device<>>::refusing;
};
template <class... Given>
tensor_parallel(Given...) -> tensor_parallel<
    0, detail::refused_arguments<type_list<Given...>,
                                 the_number_of_ranks_and_the_layout_map_are_template_arguments_in_angle_brackets>>;

}  // namespace strata
