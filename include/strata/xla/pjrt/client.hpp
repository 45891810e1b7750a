// A client of a plugin: its devices, arrays on them, and compiled modules.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/abi.hpp>
#include <strata/xla/pjrt/event.hpp>
#include <strata/xla/pjrt/inner_executable.hpp>
#include <strata/xla/pjrt/options.hpp>
#include <strata/xla/pjrt/plugin.hpp>
#include <strata/xla/pjrt/process_values.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace strata::pjrt {

class client;

/// An array on a device, and the client that it needs.
class buffer {
  std::shared_ptr<const client> of_;
  abi::buffer* handle_ = nullptr;

 public:
  buffer() = default;
  buffer(std::shared_ptr<const client> of, abi::buffer* handle) : of_(std::move(of)), handle_(handle) {}
  buffer(buffer&& other) noexcept : of_(std::move(other.of_)), handle_(std::exchange(other.handle_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  inline ~buffer();

  abi::buffer* handle() const { return handle_; }
  explicit operator bool() const { return handle_; }
  /// True if an execution has taken over its memory.
  inline bool is_donated() const;
  inline std::vector<std::int64_t> extents() const;
  /// Begins to copy it to the host, row-major. Throws plugin_error.
  inline event copy_to_host(const stablehlo::tensor_type& type, std::span<std::byte> to) const;
};

/// A module compiled for one or several devices, one replica on each.
class executable {
  std::shared_ptr<const client> of_;
  abi::loaded_executable* handle_ = nullptr;
  std::size_t results_ = 0;

  friend client;
  inline executable(std::shared_ptr<const client> of, abi::loaded_executable* handle);

 public:
  executable() = default;
  executable(executable&& other) noexcept
      : of_(std::move(other.of_)), handle_(std::exchange(other.handle_, nullptr)), results_(other.results_) {}
  executable& operator=(executable&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(handle_, other.handle_);
    std::swap(results_, other.results_);
    return *this;
  }
  inline ~executable();
  explicit operator bool() const { return handle_; }

  std::size_t results() const { return results_; }
  /// For client::load; empty if the plugin cannot serialize.
  inline std::optional<std::string> serialized() const;
  /// Begins to run: arguments[replica][argument], results[replica][result]. There is one event for each replica, which completes
  /// with it. Throws plugin_error; then there are no results.
  inline void run(std::span<abi::buffer* const* const> arguments, std::size_t argument_count,
                  std::span<abi::buffer** const> results, std::span<abi::event*> complete) const;
};

/// Devices of one platform: those that this process can use and, if several processes train together, those of the others. They
/// have the same order in all processes, in which those of a process are neighbours.
class client : public std::enable_shared_from_this<client> {
  const plugin& plugin_;
  process_values values_;
  abi::client* handle_ = nullptr;
  std::vector<abi::device*> devices_;
  std::vector<int> ids_, ids_of_all_;
  int devices_of_all_ = 0, first_of_all_ = 0;
  std::string platform_, version_, kind_, options_;

  friend buffer;
  friend executable;
  struct only_of {};

 public:
  /// The client of this plugin with these options; all that live at a time are one. Throws plugin_error if there is no device.
  static std::shared_ptr<const client> of(const plugin& p, std::vector<option> options = {}) {
    static std::mutex mutex;
    static std::map<std::pair<const plugin*, std::vector<option>>, std::weak_ptr<const client>> all;
    const std::lock_guard lock(mutex);
    std::weak_ptr<const client>& known = all[{&p, options}];
    std::shared_ptr<const client> c = known.lock();
    if (!c) known = c = std::make_shared<const client>(p, options, only_of{});
    return c;
  }

  /// One of the clients of several processes, which find each other through these values.
  static std::shared_ptr<const client> among_processes(const plugin& p, const std::vector<option>& options,
                                                       std::shared_ptr<value_store> values) {
    return std::make_shared<const client>(p, options, only_of{}, std::move(values));
  }

  client(const plugin& p, const std::vector<option>& options, only_of, std::shared_ptr<value_store> values = nullptr)
      : plugin_(p), values_(values), options_(detail::bytes_of(options)) {
    const std::vector<abi::named_value> settings = detail::named_values(options);
    abi::padded<abi::client_create> create;
    create->options = settings.data();
    create->option_count = settings.size();
    values_.lend_to(create.known);
    p.call("use the devices", abi::functions::client_create, create);
    handle_ = create->client;
    struct destroyer {
      client* of;
      ~destroyer() {
        if (of) of->destroy();
      }
    } after_an_error{this};
    platform_ = text(abi::functions::client_platform_name, handle_);
    version_ = text(abi::functions::client_platform_version, handle_);
    abi::padded<abi::devices_of_client> all;
    all->client = handle_;
    p.call("list the devices", abi::functions::client_addressable_devices, all);
    for (std::size_t i = 0; i < all->count; ++i) {
      devices_.push_back(all->devices[i]);
      ids_.push_back(id_of(description_of(all->devices[i])));
      if (i == 0) kind_ = text(abi::functions::device_description_kind, description_of(all->devices[i]));
    }
    abi::padded<abi::devices_of_client> of_all;
    of_all->client = handle_;
    p.call("list the devices", abi::functions::client_devices, of_all);
    devices_of_all_ = int(of_all->count);
    if (devices_.empty()) throw_error({"the plugin ", p.path().string(), " has no device"});
    if (values) order_by_process({of_all->devices, of_all->count});
    after_an_error.of = nullptr;
  }
  ~client() { destroy(); }

  const plugin& of_plugin() const { return plugin_; }
  /// "cpu", "tpu", "cuda".
  const std::string& platform() const { return platform_; }
  const std::string& version() const { return version_; }
  /// The kind of its first device, such as "TPU v5 lite".
  const std::string& device_kind() const { return kind_; }
  /// The number of devices that this process can use.
  int devices() const { return int(devices_.size()); }
  /// The number of devices including those of other hosts in the same group.
  int devices_of_all_hosts() const { return devices_of_all_; }
  /// The index, among all devices, of the first one of this process.
  int first_of_all() const { return first_of_all_; }
  /// True if a module with `replicas` replicas has one on each device of several processes, not only on some of this process.
  bool spans_processes(int replicas) const { return !ids_of_all_.empty() && replicas == devices_of_all_ && replicas > devices(); }
  /// The ids of the devices of so many replicas: not always 0, 1, 2, ...
  std::span<const int> ids(int replicas) const {
    return std::span(spans_processes(replicas) ? ids_of_all_ : ids_).first(std::size_t(replicas));
  }

  /// Copies an array to a device; row-major. The bytes may change when it returns.
  buffer upload(std::span<const std::byte> bytes, const stablehlo::tensor_type& type, int device) const {
    return begin_upload(bytes, type, device, abi::host_semantics::immutable_only_during_call).first;
  }
  /// Begins to. The bytes must not change until the event is done.
  std::pair<buffer, event> begin_upload(std::span<const std::byte> bytes, const stablehlo::tensor_type& type, int device) const {
    return begin_upload(bytes, type, device, abi::host_semantics::immutable_until_transfer_completes);
  }

  /// Compiles the text of a module for as many replicas as it has, on the first devices, with the options of the platform if the
  /// plugin knows them. Throws plugin_error with the failing line of the module, and strata_error if there are too few
  /// devices.
  executable compile(const stablehlo::module_text& module) const {
    if (!plugin_.has(abi::functions::client_compile)) throw_error({"the plugin ", plugin_.path().string(), " cannot compile"});
    const std::span<const compiler_option> others = options_of_platform(platform_);
    abi::loaded_executable* compiled = nullptr;
    abi::error* e = compile(module, others, compiled);
    if (e && !others.empty()) {
      const plugin_error failure = plugin_.error_of("compile", e, module.text);
      const std::string_view said = failure.what();
      if (std::ranges::none_of(others, [&](const compiler_option& o) { return said.find(o.name) != said.npos; }))
        core::throw_exception(failure);
      e = compile(module, {}, compiled);
    }
    if (e) plugin_.fail("compile", e, module.text);
    return loaded(compiled, module);
  }

  /// An executable from what `serialized` returned, in this or another process, of the same module. Throws plugin_error.
  executable load(std::string_view serialized, const stablehlo::module_text& module) const {
    abi::padded<abi::deserialize_and_load> arguments;
    arguments->client = handle_;
    arguments->bytes = serialized.data(), arguments->size = serialized.size();
    plugin_.call("load a compiled module", abi::functions::executable_deserialize_and_load, arguments);
    return loaded(arguments->executable, module);
  }

  /// All that compiling a module depends on besides its text, for keys of caches.
  std::string description(const stablehlo::module_text& module) const {
    std::string ids;
    for (const int id : ids_) ids += strata::detail::text_of({id, ' '});
    return strata::detail::text_of({platform_, '\n', version_, '\n', kind_, '\n', plugin_.minor_version(), '\n',
                                    options_for(module, options_of_platform(platform_)), '\n', options_, '\n', ids, "of ",
                                    devices_of_all_, " from ", first_of_all_});
  }

 private:
  abi::error* compile(const stablehlo::module_text& module, std::span<const compiler_option> others,
                      abi::loaded_executable*& compiled) const {
    const std::string options = options_for(module, others);
    const abi::program program = detail::program_of(module.text);
    abi::padded<abi::client_compile> arguments;
    arguments->client = handle_;
    arguments->program = &program;
    arguments->options = options.data(), arguments->options_size = options.size();
    abi::error* const e = plugin_.raw(abi::functions::client_compile, arguments);
    compiled = arguments->executable;
    return e;
  }
  std::string options_for(const stablehlo::module_text& module, std::span<const compiler_option> others) const {
    if (module.replicas < 1 || (module.replicas > devices() && !spans_processes(module.replicas)))
      throw_error({"the module is for ", module.replicas, " replicas, but the plugin ", plugin_.name(), " has ", devices(),
                   devices() == 1 ? " device" : " devices"});
    return compile_options(ids(module.replicas), others);
  }
  executable loaded(abi::loaded_executable* handle, const stablehlo::module_text& module) const {
    executable e(shared_from_this(), handle);
    if (e.results() != module.results.size())
      throw_error({"the compiled module has ", e.results(), " results instead of ", module.results.size()});
    return e;
  }

  abi::device_description* description_of(abi::device* d) const {
    abi::padded<abi::description_of_device> description;
    description->device = d;
    plugin_.call("describe a device", abi::functions::device_get_description, description);
    return description->description;
  }
  int id_of(abi::device_description* d) const {
    abi::padded<abi::id_of_device> id;
    id->description = d;
    plugin_.call("describe a device", abi::functions::device_description_id, id);
    return id->id;
  }
  void order_by_process(std::span<abi::device* const> all) {
    struct place {
      int process, id;
      auto operator<=>(const place&) const = default;
    };
    abi::padded<abi::process_of_client> self;
    self->client = handle_;
    plugin_.call("list the devices", abi::functions::client_process_index, self);
    std::vector<place> places;
    for (abi::device* const d : all) {
      abi::padded<abi::process_of_device> process;
      process->description = description_of(d);
      plugin_.call("describe a device", abi::functions::device_description_process_index, process);
      places.push_back({process->process, id_of(process->description)});
    }
    std::ranges::sort(places);
    std::vector<abi::device*> own;
    std::vector<int> own_ids;
    for (const place& at : places) {
      ids_of_all_.push_back(at.id);
      first_of_all_ += at.process < self->process;
      const auto known = std::ranges::find(ids_, at.id);
      if (at.process != self->process || known == ids_.end()) continue;
      own.push_back(devices_[std::size_t(known - ids_.begin())]);
      own_ids.push_back(at.id);
    }
    if (own.size() != devices_.size())
      throw_error({"the plugin ", plugin_.path().string(), " lists ", own.size(), " of the ", devices_.size(),
                   " devices of process ", self->process, " among those of all processes"});
    devices_ = std::move(own), ids_ = std::move(own_ids);
  }

  template <class Handle>
  std::string text(const abi::function<abi::text_of<Handle>>& f, Handle* of) const {
    abi::padded<abi::text_of<Handle>> arguments;
    arguments->of = of;
    plugin_.call("describe the devices", f, arguments);
    return {arguments->text, arguments->size};
  }

  std::pair<buffer, event> begin_upload(std::span<const std::byte> bytes, const stablehlo::tensor_type& type, int device,
                                        abi::host_semantics semantics) const {
    if (bytes.size() != type.bytes()) throw_error({"upload: ", bytes.size(), " bytes for a ", type.text(), " of ", type.bytes()});
    abi::padded<abi::buffer_from_host> arguments;
    arguments->client = handle_;
    arguments->data = bytes.data();
    arguments->type = abi_element(type.of);
    arguments->extents = type.extents.data();
    arguments->rank = type.extents.size();
    arguments->semantics = semantics;
    arguments->device = devices_[std::size_t(device)];
    plugin_.call("upload", abi::functions::client_buffer_from_host_buffer, arguments);
    return {buffer(shared_from_this(), arguments->buffer), event(plugin_, arguments->done_with_host_buffer)};
  }

  static abi::element abi_element(stablehlo::element e) {
    using enum abi::element;
    constexpr abi::element elements[] = {i1, i32, i64, ui32, ui64, bf16, f32, f64};
    return elements[int(e)];
  }
  void destroy() noexcept {
    abi::padded<abi::client_only> arguments;
    arguments->client = handle_;
    plugin_.call_quietly(abi::functions::client_destroy, arguments);
  }
};

buffer::~buffer() {
  if (!handle_) return;
  abi::padded<abi::buffer_only> arguments;
  arguments->buffer = handle_;
  of_->of_plugin().call_quietly(abi::functions::buffer_destroy, arguments);
}
bool buffer::is_donated() const {
  abi::padded<abi::buffer_is_deleted> arguments;
  arguments->buffer = handle_;
  of_->of_plugin().call("look at an array", abi::functions::buffer_is_deleted, arguments);
  return arguments->is_deleted;
}
std::vector<std::int64_t> buffer::extents() const {
  abi::padded<abi::extents_of_buffer> arguments;
  arguments->buffer = handle_;
  of_->of_plugin().call("look at an array", abi::functions::buffer_dimensions, arguments);
  return {arguments->extents, arguments->extents + arguments->rank};
}
event buffer::copy_to_host(const stablehlo::tensor_type& type, std::span<std::byte> to) const {
  if (to.size() != type.bytes()) throw_error({"read: ", to.size(), " bytes for a ", type.text(), " of ", type.bytes()});
  std::int64_t order[16];
  const std::size_t rank = type.extents.size();
  if (rank > std::size(order)) throw_error({"read: ", type.text(), " has more than ", std::size(order), " extents"});
  for (std::size_t i = 0; i < rank; ++i) order[i] = std::int64_t(rank - 1 - i);
  abi::memory_layout row_major{};
  row_major.head.struct_size = sizeof row_major;
  row_major.tiled.head.struct_size = sizeof row_major.tiled;
  row_major.tiled.minor_to_major = order;
  row_major.tiled.rank = rank;
  abi::padded<abi::buffer_to_host> arguments;
  arguments->buffer = handle_;
  arguments->layout = &row_major;
  arguments->to = to.data();
  arguments->size = to.size();
  of_->of_plugin().call("read", abi::functions::buffer_to_host_buffer, arguments);
  return {of_->of_plugin(), arguments->event};
}

executable::executable(std::shared_ptr<const client> of, abi::loaded_executable* handle) : executable() {
  of_ = std::move(of), handle_ = handle;  // released by the destructor, also after an error below
  const detail::inner_executable inner(of_->of_plugin(), handle_);
  abi::padded<abi::number_of_executable> results;
  results->executable = inner.handle();
  of_->of_plugin().call("look at a compiled module", abi::functions::executable_num_outputs, results);
  results_ = std::size_t(results->number);
}
executable::~executable() {
  if (!handle_) return;
  abi::padded<abi::loaded_executable_only> arguments;
  arguments->executable = handle_;
  of_->of_plugin().call_quietly(abi::functions::loaded_executable_destroy, arguments);
}
std::optional<std::string> executable::serialized() const {
  const detail::inner_executable inner(of_->of_plugin(), handle_);
  return detail::serialize(of_->of_plugin(), inner.handle());
}
void executable::run(std::span<abi::buffer* const* const> arguments, std::size_t argument_count,
                     std::span<abi::buffer** const> results, std::span<abi::event*> complete) const {
  abi::padded<abi::execute_options> options;
  abi::padded<abi::execute> call;
  call->executable = handle_;
  call->options = &options.known;
  call->arguments = arguments.data();
  call->device_count = arguments.size();
  call->argument_count = argument_count;
  call->results = results.data();
  call->complete = complete.data();
  of_->of_plugin().call("execute", abi::functions::loaded_executable_execute, call);
}

}  // namespace strata::pjrt
