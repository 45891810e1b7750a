// A backend without its fused kernels. Tests compare results with and without fusion, benchmarks the speed.
#pragma once
#include <strata/concepts/device_list.hpp>
#include <strata/kernel/kernel.hpp>

namespace strata::core {

/// one_device<unfused<cpu>>{}, mirrored<unfused<cpu>>{cpus(4)}
template <class Backend>
struct unfused {
  static constexpr auto name = "unfused";
  using device = device_of<Backend>;
};

template <class Backend>
struct device_list<unfused<Backend>> : device_list<Backend> {};

template <class Operation>
inline constexpr bool is_fused = false;
template <class... Operations>
inline constexpr bool is_fused<fused<Operations...>> = true;

template <class Backend, class Operation, class Precision, shape... In>
  requires(!is_fused<Operation> && !std::is_void_v<typename find_kernel<Backend, Operation, Precision, In...>::type>)
struct kernel<unfused<Backend>, Operation, Precision, In...> : find_kernel<Backend, Operation, Precision, In...>::type {};

}  // namespace strata::core
