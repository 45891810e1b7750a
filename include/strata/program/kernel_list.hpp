// The kernels of a program with their names and sizes, for a kernel_observer.
#pragma once
#include <strata/base/linkage.hpp>
#include <strata/network/summary.hpp>
#include <strata/program/compiled.hpp>
#include <string>
#include <vector>

namespace strata {

namespace core {
/// One group of the plan for training. Sizes are those of one sample, in elements.
struct listed_kernel {
  std::string layers, operations;  // "conv2d, max_pooling2d", "convolution + relu + max_pooling"
  struct array {
    std::string name;  // of a parameter: conv2d/kernel; of an input: the layers that made it, or empty for the batch
    std::size_t size;
    bool has_gradient;
  };
  std::vector<array> inputs, parameters;
  shape output{};
  bool trains = false;
  double multiply_adds = 0;  // of forward; backward needs as many for the weights, and as many for the input

  /// Floating-point operations of a sample. 0: not known, or none to speak of.
  double flops(bool backward) const {
    const bool into_input = !inputs.empty() && inputs[0].has_gradient,
               into_weights = !parameters.empty() && parameters[0].has_gradient;
    return 2 * multiply_adds * (backward ? double(into_input) + double(into_weights) : 1.0);
  }
  /// Elements that `calls` for so many samples in all read and write: each input, output, weight and gradient once in a call.
  double elements(bool backward, double samples, double calls) const {
    double all = samples * double(output.size());
    for (const array& x : inputs) all += samples * double(x.size) * (backward && x.has_gradient ? 2 : 1);
    for (const array& w : parameters) all += calls * double(w.size) * (backward && w.has_gradient ? 2 : 1);
    return all;
  }
};
}  // namespace core

namespace detail {
std::vector<listed_kernel> listed_kernels(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                          std::span<const kernel_group> groups);
/// The layers to which the operations of a group belong: "conv2d, max_pooling2d". A loss is not a layer.
std::string layers_of_group(std::span<const tape_node> nodes, const std::vector<std::string>& names, const kernel_group& g);
/// "convolution + relu + max_pooling"
std::string operations_of_group(std::span<const tape_node> nodes, const kernel_group& g);
}  // namespace detail

namespace core {
/// The kernels in the order of the groups of the plan for training.
template <class Program, class Backend>
std::vector<listed_kernel> kernel_list() {
  constexpr const auto& p = plan_of<Program, Backend>;
  constexpr const auto& l = layout_of<typename Program::items>;
  return detail::listed_kernels(tape_of<typename Program::items>.nodes, std::span(l.slots, std::size_t(l.count)),
                                std::span(p.groups, std::size_t(p.group_count)));
}
}  // namespace core

}  // namespace strata

#if STRATA_DEFINES
#include <strata/program/kernel_list.ipp>
#endif
