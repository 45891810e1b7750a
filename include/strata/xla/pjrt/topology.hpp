// Compiling for devices that this machine does not have: a plugin such as libtpu needs only their name.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/abi.hpp>
#include <strata/xla/pjrt/inner_executable.hpp>
#include <strata/xla/pjrt/options.hpp>
#include <strata/xla/pjrt/plugin.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::pjrt {

/// A module compiled ahead of time, with the compiler's estimates.
struct compiled_ahead {
  std::string serialized;  // for client::load on such devices; empty if the plugin cannot make it
  std::map<std::string, double>
      cost;  // "flops", "bytes accessed", "optimal_seconds", ...: estimates of XLA, as far as it has some
};

/// A group of devices, such as "v5e:2x4", by which a plugin compiles without having them.
class topology {
  const plugin& plugin_;
  abi::topology* handle_ = nullptr;
  std::vector<int> ids_;

 public:
  /// Throws plugin_error if the plugin has no topology of that name.
  topology(const plugin& p, const std::string& name, const std::vector<option>& options = {}) : plugin_(p) {
    if (!p.has(abi::functions::topology_get_device_descriptions) || !p.has(abi::functions::device_description_id))
      throw_error({"the plugin ", p.path().string(), " cannot list the devices of a topology"});
    const std::vector<abi::named_value> values = detail::named_values(options);
    abi::padded<abi::topology_create> create;
    create->name = name.data(), create->name_size = name.size();
    create->options = values.data(), create->option_count = values.size();
    p.call("topology", abi::functions::topology_create, create);
    handle_ = create->topology;
    abi::padded<abi::devices_of_topology> all;
    all->topology = handle_;
    abi::error* failed = p.raw(abi::functions::topology_get_device_descriptions, all);
    for (std::size_t i = 0; !failed && i < all->count; ++i) {
      abi::padded<abi::id_of_device> id;
      id->description = all->descriptions[i];
      failed = p.raw(abi::functions::device_description_id, id);
      ids_.push_back(id->id);
    }
    if (!failed) return;
    destroy();
    p.fail("topology", failed);
  }
  topology(const topology&) = delete;
  ~topology() { destroy(); }

  int devices() const { return int(ids_.size()); }
  /// "tpu", "cuda". Throws plugin_error.
  std::string platform() const {
    abi::padded<abi::text_of<abi::topology>> arguments;
    arguments->of = handle_;
    plugin_.call("describe the topology", abi::functions::topology_platform_name, arguments);
    return {arguments->text, arguments->size};
  }
  /// The ids in the order of the plugin, which is not always ascending.
  std::span<const int> ids() const { return ids_; }

  /// Compiles for the first devices, as many as the module has replicas. Throws plugin_error with the failing line of the module.
  compiled_ahead compile(const stablehlo::module_text& module) const {
    if (module.replicas < 1 || module.replicas > devices())  // libtpu would end the process
      throw_error({"the module is for ", module.replicas, " replicas, but the topology has ", devices(), " devices"});
    const std::string options = compile_options(ids().first(std::size_t(module.replicas)));
    const abi::program program = detail::program_of(module.text);
    abi::padded<abi::compile> arguments;
    arguments->topology = handle_;
    arguments->program = &program;
    arguments->options = options.data(), arguments->options_size = options.size();
    if (!plugin_.has(abi::functions::compile))
      throw_error({"the plugin ", plugin_.path().string(), " cannot compile ahead of time"});
    if (abi::error* const e = plugin_.raw(abi::functions::compile, arguments)) plugin_.fail("compile", e, module.text);
    const detail::inner_executable executable(plugin_, arguments->executable);
    return {detail::serialize(plugin_, executable.handle()).value_or(""), cost(executable.handle())};
  }

 private:
  std::map<std::string, double> cost(abi::executable* executable) const {
    std::map<std::string, double> out;
    abi::padded<abi::cost_analysis> arguments;
    arguments->executable = executable;
    if (!plugin_.call_if_implemented("cost analysis", abi::functions::executable_get_cost_analysis, arguments)) return out;
    for (std::size_t i = 0; i < arguments->count; ++i)
      if (const abi::named_value& v = arguments->properties[i]; v.kind == abi::value_kind::float32 && v.float32 >= 0)
        out[std::string(v.name, v.name_size)] = double(v.float32);
    return out;
  }
  void destroy() noexcept {
    abi::padded<abi::topology_only> arguments;
    arguments->topology = handle_;
    plugin_.call_quietly(abi::functions::topology_destroy, arguments);
  }
};

}  // namespace strata::pjrt
