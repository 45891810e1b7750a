// A StableHLO module as text, and what its arguments and results are: the seam between the emitter, which writes modules of a
// program, and the executor, which compiles and runs them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::stablehlo {

/// The element types of a tensor.
enum class element { i1, i32, i64, ui32, ui64, bf16, f32, f64 };

constexpr const char* name_of(element e) {
  constexpr const char* names[] = {"i1", "i32", "i64", "ui32", "ui64", "bf16", "f32", "f64"};
  return names[int(e)];
}
constexpr std::size_t bytes_of(element e) {
  constexpr std::size_t bytes[] = {1, 4, 8, 4, 8, 2, 4, 8};
  return bytes[int(e)];
}
template <class T>
inline constexpr element element_of = element::f32;
template <>
inline constexpr element element_of<double> = element::f64;
template <>
inline constexpr element element_of<std::int32_t> = element::i32;
template <>
inline constexpr element element_of<std::uint64_t> = element::ui64;

/// `tensor<64x10xf32>`; without extents a scalar. Row-major.
struct tensor_type {
  element of = element::f32;
  std::vector<std::int64_t> extents;

  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t e : extents) n *= e;
    return n;
  }
  std::size_t bytes() const { return std::size_t(size()) * bytes_of(of); }
  std::string text() const {
    std::string t = "tensor<";
    for (std::int64_t e : extents) t += detail::text_of({long(e), 'x'});
    return t += name_of(of), t += '>';
  }
  friend bool operator==(const tensor_type&, const tensor_type&) = default;
};

/// The meaning of an argument or a result of a module.
enum class role {
  parameter,      // index: its slot of layout_of_program. As a result: after the update
  slot,           // of the optimizer, the `arena`-th one of parameter `index`; trained parameters only
  input,          // index: of the network. (rows, shape...)
  truth,          // index: of the output. Sparse: (rows) of i32; dense: (rows, shape...)
  sample_weight,  // index: of the output. (rows)
  row_count,      // i32: how many rows of this replica are samples; the others are padding and are ignored
  batch_count,    // i32: the samples of all replicas
  step_scalars,   // (n): what an update has that changes from step to step, as step_scalars() of the emitter computes it
  random_key,     // ui64: the key of philox for this step. Sample n of a replica is sample replica_id * rows + n of the batch
  sums,           // (pairs, 2): the metric_sums of the step, over all replicas
  gradient,       // index: slot of the layout. The mean over the batch, before penalties and clipping
  prediction      // index: of the output. (rows, shape...)
};

/// An argument or a result of a module.
struct argument {
  role what{};
  int index = 0;
  int arena = 0;
  tensor_type type;
  int donated_to = -1;  // the result that takes over the memory of this argument
};

/// A module, with the order of its arguments and results.
struct module_text {
  std::string text;  // of StableHLO
  std::vector<argument> arguments, results;
  int replicas = 1;
};

/// The choices that depend on the platform, with the measurements of docs/decisions.
struct platform_traits {
  bool pools_by_reduce_window = true;    // otherwise max pooling whose windows do not overlap is element-wise
  bool loops = true;                     // several steps are one call, in a loop on the device; otherwise a call each
  int channels_of_convolved_images = 0;  // with fewer, the gradient of a kernel is a product of patches
  bool depthwise_by_element = false;     // a depthwise convolution is a sum of shifted images, each times its weights

  friend constexpr bool operator==(const platform_traits&, const platform_traits&) = default;
};

/// platform: the name that the plugin reports, such as "cpu".
constexpr platform_traits traits_of_platform(std::string_view platform) {
  return {.pools_by_reduce_window = platform != "cpu",
          .loops = platform != "cpu",
          .channels_of_convolved_images = platform == "tpu" ? 8 : 0,
          .depthwise_by_element = platform == "tpu"};
}

/// The rows of each replica, when so many samples are cut into parts of equal size; the last ones may be padding.
constexpr int rows_of_replica(int samples, int replicas) { return samples / replicas + (samples % replicas != 0); }

/// The parameters of a module besides its program.
struct module_options {
  int rows = 0;                 // of each replica
  int replicas = 1;             // the rows of a batch lie in their order
  int steps = 1;                // of a call. More than one: all but parameters and slots have a first extent `steps`
  bool is_padded = false;       // there are arguments row_count and batch_count
  bool has_weights = false;     // there are arguments sample_weight, one for each output
  bool keeps_gradient = false;  // there are results gradient
  std::string frozen{};         // a character for each slot of the layout, '1': it is trained no longer. Empty: all '0'
  platform_traits platform{};

  bool is_frozen(std::size_t slot) const { return slot < frozen.size() && frozen[slot] == '1'; }
  friend bool operator==(const module_options&, const module_options&) = default;
};

// The emitter, strata/xla/emitter, has
//   template <class Program> module_text training_module(const typename Program::optimizer&, const module_options&);
//   template <class Program> module_text evaluation_module(const module_options&);
//   template <class Program> module_text prediction_module(const module_options&);
//   template <class Program> std::vector<T> step_scalars(const typename Program::optimizer&, long step, double rate);
// The last two ignore `steps`. Results come in any order; their roles identify them. Every argument of a training module that is
// a parameter or a slot has a result of the same role, and is donated to it, except frozen parameters, which have no slots.

}  // namespace strata::stablehlo
