// A PJRT plugin: a shared library with the functions of a device.
#pragma once
#include <dlfcn.h>

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <strata/base/error.hpp>
#include <strata/xla/pjrt/abi.hpp>
#include <strata/xla/pjrt/plugin_error.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace strata::pjrt {

/// A plugin that has been loaded. It stays until the process ends: plugins start threads, and cannot be unloaded.
class plugin {
  const abi::api* api_;
  std::filesystem::path path_;
  std::string name_;

 public:
  /// Loads a plugin, once in a process. Throws strata_error with the path for a file that is no plugin, for a version of
  /// the interface that strata does not support, and for a function whose arguments have another size than expected.
  static const plugin& load(const std::filesystem::path& path) {
    static std::mutex mutex;
    // Never destroyed: a trainer that is a global variable may end after what is static here.
    static auto& loaded = *new std::map<std::filesystem::path, std::unique_ptr<plugin>>;
    std::error_code ignored;
    const std::filesystem::path file = std::filesystem::weakly_canonical(path, ignored);
    const std::lock_guard lock(mutex);
    std::unique_ptr<plugin>& p = loaded[file];
    if (!p) p.reset(new plugin(path));
    return *p;
  }
  plugin(const plugin&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Its file name, for messages.
  const std::string& name() const { return name_; }
  int minor_version() const { return api_->minor; }

  template <class Arguments>
  bool has(const abi::function<Arguments>& f) const {
    return api_->head.struct_size >= offsetof(abi::api, functions) + sizeof(void*) * std::size_t(f.slot + 1) &&
           api_->functions[f.slot];
  }

  /// Calls a function. Throws plugin_error, which begins with `action`, or strata_error if the plugin does not have it.
  template <class Arguments>
  void call(std::string_view action, const abi::function<Arguments>& f, abi::padded<Arguments>& arguments) const {
    if (!has(f)) throw_error({action, ": the plugin ", path_.string(), " has no function ", f.name});
    if (abi::error* const e = raw(f, arguments)) fail(action, e);
  }
  /// Like call, but returns false if the plugin does not have the function or reports it as not implemented.
  template <class Arguments>
  bool call_if_implemented(std::string_view action, const abi::function<Arguments>& f, abi::padded<Arguments>& arguments) const {
    if (!has(f)) return false;
    abi::error* const e = raw(f, arguments);
    if (!e) return true;
    if (read(e).first != status::unimplemented) fail(action, e);
    destroy(e);
    return false;
  }
  /// For destructors: ignores errors.
  template <class Arguments>
  void call_quietly(const abi::function<Arguments>& f, abi::padded<Arguments>& arguments) const noexcept {
    if (has(f))
      if (abi::error* const e = raw(f, arguments)) destroy(e);
  }
  [[noreturn]] void fail(std::string_view action, abi::error* e, std::string_view text_of_module = "") const {
    core::throw_exception(error_of(action, e, text_of_module));
  }
  /// Converts e to a plugin_error, and destroys e.
  plugin_error error_of(std::string_view action, abi::error* e, std::string_view text_of_module = "") const {
    const auto [code, message] = read(e);
    destroy(e);
    const std::string line = detail::line_named_by(message, text_of_module);
    return plugin_error(action, name_, code, message,
                        line.empty() ? line : strata::detail::text_of({"\nThe line of the module is: ", line}));
  }
  template <class Arguments>
  abi::error* raw(const abi::function<Arguments>& f, abi::padded<Arguments>& arguments) const noexcept {
    using function = abi::error* (*)(Arguments*);
    return reinterpret_cast<function>(api_->functions[f.slot])(&arguments.known);
  }

 private:
  explicit plugin(const std::filesystem::path& path) : path_(path), name_(path.filename().string()) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw_error({"cannot load the plugin ", path.string(), ": ", ::dlerror()});
    const auto get = reinterpret_cast<const abi::api* (*)()>(::dlsym(library, "GetPjrtApi"));
    if (!get) throw_error({path.string(), " is not a PJRT plugin: it has no function GetPjrtApi"});
    api_ = get();
    if (!api_ || api_->head.struct_size < offsetof(abi::api, functions))
      throw_error({path.string(), " is not a PJRT plugin: its table of functions is empty"});
    if (api_->major != abi::major_version || api_->minor < abi::least_minor_version)
      throw_error({"the plugin ", path.string(), " has version ", api_->major, '.', api_->minor,
                   " of the PJRT interface, but strata supports ", abi::major_version, '.', abi::least_minor_version,
                   " and newer of ", abi::major_version});
    using namespace abi::functions;
    if (!has(error_destroy) || !has(error_message) || !has(error_get_code))
      throw_error({"the plugin ", path.string(), " cannot report its errors"});
    abi::padded<abi::nothing> initialize;
    if (has(plugin_initialize)) call("load", plugin_initialize, initialize);
    check_sizes();
  }

  /// Called with arguments that are too small, a plugin reports their size before it reads them.
  void check_sizes() const {
    using namespace abi::functions;
    const auto check = [this](const auto&... f) { (check_size(f), ...); };
    check(event_destroy, event_is_ready, event_await, client_process_index, device_description_process_index, client_create,
          client_destroy, client_platform_name, client_platform_version, client_devices, client_addressable_devices,
          client_compile, client_buffer_from_host_buffer, device_description_id, device_description_kind, device_get_description,
          executable_destroy, executable_num_outputs, executable_get_cost_analysis, executable_serialize,
          loaded_executable_destroy, loaded_executable_get_executable, loaded_executable_execute, executable_deserialize_and_load,
          buffer_destroy, buffer_dimensions, buffer_is_deleted, buffer_to_host_buffer, topology_create, topology_destroy,
          topology_platform_name, topology_get_device_descriptions, compile);
  }
  template <class Arguments>
  void check_size(const abi::function<Arguments>& f) const {
    if (!has(f)) return;  // `call` reports it
    abi::padded<Arguments> arguments;
    arguments->head.struct_size = 1;
    abi::error* const e = raw(f, arguments);
    const auto [code, message] = e ? read(e) : std::pair(status::ok, std::string());
    if (e) destroy(e);
    if (code == status::unimplemented) return;
    constexpr std::string_view expected = "size: expected ";
    const std::size_t at = message.find(expected);
    std::size_t size = 0;
    if (at == message.npos ||
        std::from_chars(message.data() + at + expected.size(), message.data() + message.size(), size).ec != std::errc())
      throw_error({"the plugin ", path_.string(), " does not check the size of the arguments of ", f.name,
                   ", so that strata cannot check that both mean the same"});
    if (size < f.least || size > sizeof arguments)
      throw_error({"the plugin ", path_.string(), " expects ", size, " bytes of arguments for ", f.name, ", but strata supports ",
                   f.least, " to ", sizeof arguments});
  }

  std::pair<status, std::string> read(abi::error* e) const {
    abi::padded<abi::error_message> message;
    message->error = e;
    reinterpret_cast<void (*)(abi::error_message*)>(api_->functions[abi::functions::error_message.slot])(&message.known);
    abi::padded<abi::error_code> code;
    code->error = e;
    if (abi::error* const again = raw(abi::functions::error_get_code, code)) {
      destroy(again);
      code->code = int(status::unknown);
    }
    return {status(code->code), detail::without_trailing_space({message->message, message->message_size})};
  }
  void destroy(abi::error* e) const noexcept {
    abi::padded<abi::error_only> arguments;
    arguments->error = e;
    reinterpret_cast<void (*)(abi::error_only*)>(api_->functions[abi::functions::error_destroy.slot])(&arguments.known);
  }
};

}  // namespace strata::pjrt
