// The strategy xla: the whole step as one module that a PJRT plugin runs, on one device or on several.
#pragma once
#ifdef _WIN32
#error "plugins of XLA need POSIX: on Windows networks compute on the cores of the processor, with strata/strata.hpp"
#endif
#include <cstdint>
#include <filesystem>
#include <strata/xla/emitter/emitter.hpp>
#include <strata/xla/pjrt/find_plugin.hpp>
#include <strata/xla/pjrt/options.hpp>
#include <strata/xla/runtime/choose_devices.hpp>
#include <strata/xla/runtime/executor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
/// The modules of a program, written by the emitter.
template <class Program>
struct emitted_modules {
  using optimizer = typename Program::optimizer;
  static stablehlo::module_text training(const optimizer& o, const stablehlo::module_options& options) {
    return stablehlo::training_module<Program>(o, options);
  }
  static stablehlo::module_text evaluation(const stablehlo::module_options& options) {
    return stablehlo::evaluation_module<Program>(options);
  }
  static stablehlo::module_text prediction(const stablehlo::module_options& options) {
    return stablehlo::prediction_module<Program>(options);
  }
  static auto step_scalars(const optimizer& o, long step, double rate) { return stablehlo::step_scalars<Program>(o, step, rate); }
};
}  // namespace detail

/// Trains on the devices of a PJRT plugin. `xla{}` takes the plugin that the environment variable STRATA_XLA_PLUGIN names, or
/// that of PyPI's xla-cpu-pjrt:
///   trainer{network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, xla{.replicas = 4}}
/// Several replicas compute equal parts of each batch, and add up their gradients. The constructor of the trainer throws
/// strata_error if there is no such plugin, or too few devices.
struct xla {
  static constexpr auto name = "xla";

  std::string plugin{};                 // a path, "cpu", "cuda" or "tpu"
  int replicas = 1;                     // devices; 0: all
  std::filesystem::path cache{};        // a folder for compiled modules; empty: that of STRATA_XLA_CACHE, if it is set
  std::vector<pjrt::option> options{};  // of the plugin

  template <class Program>
  using executor = core::module_executor<Program, detail::emitted_modules<Program>>;
  /// The diagnostic about an operation of the program that has no emission.
  template <class Program>
  using verdict = stablehlo::emission_verdict<Program>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, core::choose_devices(pjrt::find_plugin(plugin), options, replicas, cache)};
  }
};

}  // namespace strata
