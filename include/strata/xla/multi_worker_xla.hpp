// multi_worker_xla: one process per host, and the devices of all hosts as one. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/xla/pjrt/find_plugin.hpp>
#include <strata/xla/pjrt/options.hpp>
#include <strata/xla/pjrt/process_values.hpp>
#include <strata/xla/runtime/choose_devices.hpp>
#include <strata/xla/runtime/executor.hpp>
#include <strata/xla/xla.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// Options of multi_worker_xla.
struct multi_worker_xla_options {
  std::string plugin{};                 // a path, "cuda" or "tpu"; empty: as xla has it
  std::filesystem::path cache{};        // a folder for compiled modules; empty: that of STRATA_XLA_CACHE, if it is set
  std::vector<pjrt::option> options{};  // of the plugin
  communication_options communication{};
  control_options control{};
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);  // until all workers have joined
};

namespace detail {
/// The values of a training's control plane, for plugins. Their names begin with "pjrt/".
class values_of_plugins final : public pjrt::value_store {
  std::shared_ptr<key_value_store> all_;

 public:
  explicit values_of_plugins(std::shared_ptr<key_value_store> all) : all_(std::move(all)) {}
  void set(const std::string& key, const std::string& value) override { all_->set("pjrt/" + key, value); }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    return all_->get("pjrt/" + key, timeout);
  }
};
}  // namespace detail

/// `multi_worker_xla{tpu_workers(), {.plugin = "tpu"}}`: each worker runs the same program on the same data set. Each device of
/// each host computes an equal part of every global batch, and a worker reads and sends the rows of its own devices only; the
/// gradients are added up by the devices. Plugins find each other through the control plane of the workers, which also notices
/// when one is lost. The resolver is that of a cluster, such as tf_config() or slurm(); one worker is xla{.replicas = 0}. The
/// trainer's constructor connects the workers. Throws strata_error if the plugin knows the devices of one process only or
/// if workers train different programs, communication_error if a worker does not join or is lost, and pjrt::plugin_error.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy
struct multi_worker_xla {
  static constexpr auto name = "multi_worker_xla";

  any_resolver resolver;
  multi_worker_xla_options options{};

  template <class Program>
  using executor = core::module_executor<Program, detail::emitted_modules<Program>, control::worker_connections>;
  /// The diagnostic about an operation of the program that has no emission.
  template <class Program>
  using verdict = stablehlo::emission_verdict<Program>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    const cluster members = detail::members_that_train(name, resolver);
    const std::filesystem::path plugin = pjrt::find_plugin(options.plugin);
    control::worker_connections processes(
        members,
        detail::text_of({"seed ", seed, ", ", plugin.filename().string(), ", ", detail::text_of_arithmetic(), ", ",
                         detail::text_of_optimizer(optimizer), ", ", detail::text_of_program<Program>()}),
        {.communication = options.communication,
         .control = options.control,
         .elastic = {},
         .start_timeout = options.start_timeout});
    core::module_devices on =
        members.size() == 1
            ? core::choose_devices(plugin, options.options, 0, options.cache)
            : core::devices_of_processes(plugin, options_in(members, plugin), members.size(),
                                         std::make_shared<detail::values_of_plugins>(processes.values()), options.cache);
    return {std::move(optimizer), seed, std::move(on), std::move(processes)};
  }

 private:
  /// A plugin for GPUs needs the rank of the process as an option; libtpu finds the rank itself, and rejects unknown options.
  std::vector<pjrt::option> options_in(const cluster& members, const std::filesystem::path& plugin) const {
    std::vector<pjrt::option> all = options.options;
    if (plugin.filename().string().find("cuda") == std::string::npos) return all;
    all.push_back({"num_nodes", std::int64_t(members.size())});
    all.push_back({"node_id", std::int64_t(members.rank())});
    return all;
  }
};

}  // namespace strata
