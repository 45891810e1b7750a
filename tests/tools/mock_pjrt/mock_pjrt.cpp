// The mock plugin: see mock_pjrt.hpp.
#include "mock_pjrt.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <strata/xla/pjrt/abi.hpp>
#include <thread>
#include <tuple>
#include <utility>

namespace abi = strata::pjrt::abi;

struct abi::error {
  int code;
  std::string message;
};

namespace mock_pjrt {

observations& observed() {
  static auto& all = *new observations;  // objects may be destroyed when the process ends
  return all;
}

namespace {

template <class T>
T* created(const char* kind, T* object) {
  ++observed().alive[kind];
  return object;
}
template <class T>
void destroyed(const char* kind, T* object) {
  if (!object) return;
  --observed().alive[kind];
  delete object;
}
abi::error* failure(int code, std::string message) { return created("error", new abi::error{code, std::move(message)}); }
void violation(std::string what) { observed().violations.push_back(std::move(what)); }

struct client {
  std::vector<int> devices, others;
  std::vector<void*> handles, handles_of_all;
  int buffers = 0;
  // With several processes, the device ids of process n begin at 10 n.
  int process = 0, processes = 1, executions = 0;
  abi::client_create callbacks{};

  abi::error* put(const std::string& key, const std::string& value) const {
    abi::callback_error fail = &make_error;
    abi::key_value_put a{.head = {},
                         .key = key.data(),
                         .key_size = key.size(),
                         .value = value.data(),
                         .value_size = value.size(),
                         .callback_error = &fail,
                         .argument = callbacks.put_argument};
    return callbacks.put(&a);
  }
  abi::error* get(const std::string& key, std::string& value) const {
    abi::callback_error fail = &make_error;
    abi::key_value_get a{.head = {},
                         .key = key.data(),
                         .key_size = key.size(),
                         .timeout_in_ms = 20000,
                         .callback_error = &fail,
                         .argument = callbacks.get_argument,
                         .value = nullptr,
                         .value_size = 0,
                         .destroy_value = nullptr};
    return taken(callbacks.get(&a), a, value);
  }
  abi::error* try_get(const std::string& key, std::string& value) const {
    abi::callback_error fail = &make_error;
    abi::key_value_try_get a{.head = {},
                             .key = key.data(),
                             .key_size = key.size(),
                             .callback_error = &fail,
                             .argument = callbacks.try_get_argument,
                             .value = nullptr,
                             .value_size = 0,
                             .destroy_value = nullptr};
    return taken(callbacks.try_get(&a), a, value);
  }

 private:
  static abi::error* make_error(int code, const char* message, std::size_t size) {
    return failure(code, std::string(message, size));
  }
  template <class Arguments>
  static abi::error* taken(abi::error* e, const Arguments& a, std::string& value) {
    if (e) return e;
    value.assign(a.value, a.value_size);
    a.destroy_value(a.value);
    return nullptr;
  }
};
struct tensor {
  int type = 0;
  std::vector<std::int64_t> extents;
  bool operator==(const tensor&) const = default;
  std::size_t element() const {
    switch (abi::element(type)) {
      case abi::element::i1:
        return 1;
      case abi::element::bf16:
        return 2;
      case abi::element::i64:
      case abi::element::ui64:
      case abi::element::f64:
        return 8;
      default:
        return 4;
    }
  }
  std::size_t bytes() const {
    std::size_t n = element();
    for (std::int64_t e : extents) n *= std::size_t(e);
    return n;
  }
};
struct execution;
/// The contents of an array. They arrive late, as on a device: only when they are awaited or used.
struct contents {
  std::vector<std::byte> bytes;
  const void* from = nullptr;          // the array of the host
  std::shared_ptr<execution> made_by;  // null: it has ended
  int users = 0;                       // executions that have not ended
  bool has_failed = false;

  void arrive();
};
struct buffer {
  client* of;
  int device;
  tensor type;
  std::shared_ptr<contents> holds = std::make_shared<contents>();
  bool is_donated = false;
};
struct module {
  std::string text;
  std::vector<tensor> arguments, results;
  std::vector<int> donated_to;
  std::vector<int> devices;
};

/// The results are computed when the execution ends.
struct execution {
  int number;
  module what;
  std::vector<std::shared_ptr<contents>> in;  // [device][argument]
  std::vector<std::weak_ptr<contents>> out;   // [device][result]; none where the array has been destroyed
  bool fails, has_ended = false;
  const client* spans = nullptr;  // the devices of all processes
  int rendezvous = 0;             // its number among such executions

  void end();
  /// Whether the other processes have begun this execution, too.
  bool is_ready() const {
    std::string begun;
    for (int p = 0; spans && !has_ended && p < spans->processes; ++p) {
      if (abi::error* const e = spans->try_get(key(rendezvous, p), begun)) return destroyed("error", e), false;
      if (begun != identity()) return false;
    }
    return true;
  }
  /// Equal only for equal modules: different executions do not begin together.
  std::string identity() const { return std::to_string(std::hash<std::string>()(what.text)); }
  static std::string key(int rendezvous, int process) {
    return "execution " + std::to_string(rendezvous) + " of " + std::to_string(process);
  }
};
struct event {
  std::shared_ptr<contents> arriving = nullptr;  // a copy to the device
  std::shared_ptr<contents> leaving = nullptr;
  void* to = nullptr;
  std::shared_ptr<execution> ends = nullptr;
  bool fails = false, hangs = false;

  void happen() {
    while (hangs) std::this_thread::sleep_for(std::chrono::hours(1));
    if (arriving) std::exchange(arriving, nullptr)->arrive();
    if (to) {
      leaving->arrive();
      fails = leaving->has_failed;
      std::memcpy(std::exchange(to, nullptr), leaving->bytes.data(), leaving->bytes.size());
    }
    if (ends) {
      ends->end();
      fails = std::exchange(ends, nullptr)->fails;
    }
  }
};

template <class To, class From>
To* as(From* handle) {
  return reinterpret_cast<To*>(handle);
}

// ---- the signature of a module

tensor read_tensor(const std::string& text, std::size_t& at) {
  tensor t;
  at = text.find("tensor<", at) + 7;
  std::string rest = text.substr(at, text.find('>', at) - at);
  for (std::size_t x; (x = rest.find('x')) != rest.npos; rest.erase(0, x + 1)) t.extents.push_back(std::stoll(rest));
  const std::map<std::string, abi::element> names = {
      {"i1", abi::element::i1},     {"i32", abi::element::i32}, {"i64", abi::element::i64}, {"ui32", abi::element::ui32},
      {"ui64", abi::element::ui64}, {"f32", abi::element::f32}, {"f64", abi::element::f64}, {"bf16", abi::element::bf16}};
  t.type = int(names.at(rest));
  return t;
}
/// The index of the parenthesis that closes the one at `at`.
std::size_t closing(const std::string& text, std::size_t at) {
  for (int depth = 0; at < text.size(); ++at) {
    depth += text[at] == '(';
    depth -= text[at] == ')';
    if (depth == 0) break;
  }
  return at;
}
module read_module(const std::string& text) {
  module m;
  m.text = text;
  const std::size_t begin = text.find("@main(") + 5, end = closing(text, begin);
  std::size_t at = begin;
  while (text.find("tensor<", at) < end) {
    m.arguments.push_back(read_tensor(text, at));
    const std::size_t next = std::min(text.find("tensor<", at), end), alias = text.find("tf.aliasing_output = ", at);
    m.donated_to.push_back(alias < next ? std::stoi(text.substr(alias + 21)) : -1);
  }
  at = text.find("->", end);
  const std::size_t last = text[at + 3] == '(' ? closing(text, at + 3) : text.find('{', at);
  while (text.find("tensor<", at) < last) m.results.push_back(read_tensor(text, at));
  return m;
}

/// The device ids of a CompileOptionsProto for one replica on each, as strata writes it.
std::vector<int> read_options(const char* bytes, std::size_t size) {
  const std::string text(bytes, size);
  const auto inside = [](const std::string& message, unsigned char tag) {
    for (std::size_t at = 0; at + 1 < message.size();) {
      const unsigned char key = static_cast<unsigned char>(message[at]), length = static_cast<unsigned char>(message[at + 1]);
      if ((key & 7) == 0) {
        at += 2;
        continue;
      }
      if (key == tag) return message.substr(at + 2, length);
      at += 2u + length;
    }
    return std::string();
  };
  std::vector<int> ids;
  for (char id : inside(inside(inside(inside(text, 0x1a), 0x4a), 0x1a), 0x0a)) ids.push_back(id);
  return ids;
}

// ---- functions

abi::error* injected(const char* name) {
  observations& all = observed();
  ++all.calls[name];
  if (all.failing_function != name || all.failing_after-- > 0) return nullptr;
  all.failing_function.clear();
  return failure(all.failing_code, all.failing_message);
}

void error_destroy(abi::error_only* a) { destroyed("error", a->error); }
void error_message(abi::error_message* a) { a->message = a->error->message.data(), a->message_size = a->error->message.size(); }
abi::error* error_get_code(abi::error_code* a) {
  a->code = a->error->code;
  return nullptr;
}
abi::error* plugin_initialize(abi::nothing*) { return nullptr; }
abi::error* event_destroy(abi::event_only* a) {
  if (a->event && as<event>(a->event)->to) violation("a copy to the host is given up before it has ended");
  destroyed("event", as<event>(a->event));
  return nullptr;
}
abi::error* event_await(abi::event_only* a) {
  event* const e = as<event>(a->event);
  e->happen();
  return e->fails ? failure(13, "the device has failed") : nullptr;
}
abi::error* event_is_ready(abi::event_is_ready* a) {
  const event* const e = as<event>(a->event);
  a->is_ready = !e->hangs && (!e->ends || e->ends->is_ready());
  return nullptr;
}
abi::error* client_create(abi::client_create* a) {
  auto* c = created("client", new client);
  c->devices = {0, 1, 5, 4};  // ids need not be in order
  for (std::size_t i = 0; i < a->option_count; ++i) {
    const abi::named_value& o = a->options[i];
    observed().options_of_clients.emplace_back(o.name, o.name_size);
    if (observed().options_of_clients.back() == "cpu_device_count") {
      c->devices.clear();
      for (int d = 0; d < o.int64; ++d) c->devices.push_back(d);
    }
    if (observed().options_of_clients.back() == "node_id") c->process = int(o.int64);
    if (observed().options_of_clients.back() == "num_nodes") c->processes = int(o.int64);
  }
  if (a->get && c->processes > 1) {
    c->callbacks = *a;
    c->devices = {10 * c->process + 1, 10 * c->process};
    abi::error* e = c->put("devices of " + std::to_string(c->process), "2");
    for (int p = 0; p < c->processes && !e; ++p) {
      std::string count;
      if (p == c->process) continue;
      e = c->get("devices of " + std::to_string(p), count);
      for (int d = 0; !e && d < std::stoi(count); ++d) c->others.push_back(10 * p + d);
    }
    if (e) return destroyed("client", c), e;
  }
  for (int& d : c->devices) c->handles.push_back(&d);
  a->client = as<abi::client>(c);
  return nullptr;
}
abi::error* client_destroy(abi::client_only* a) {
  client* const c = as<client>(a->client);
  if (c && c->buffers > 0) violation("a client is destroyed before its arrays");
  destroyed("client", c);
  return nullptr;
}
abi::error* client_platform_name(abi::text_of<abi::client>* a) {
  a->text = "cpu", a->size = 3;
  return nullptr;
}
abi::error* client_platform_version(abi::text_of<abi::client>* a) {
  a->text = "mock 1", a->size = 6;
  return nullptr;
}
abi::error* client_addressable_devices(abi::devices_of_client* a) {
  client* const c = as<client>(a->client);
  a->devices = reinterpret_cast<abi::device**>(c->handles.data()), a->count = c->handles.size();
  return nullptr;
}
abi::error* client_devices(abi::devices_of_client* a) {
  client* const c = as<client>(a->client);
  c->handles_of_all = c->handles;
  c->handles_of_all.resize(c->handles.size() + std::size_t(observed().devices_of_other_hosts));
  for (int& d : c->others) c->handles_of_all.push_back(&d);
  a->devices = reinterpret_cast<abi::device**>(c->handles_of_all.data()), a->count = c->handles_of_all.size();
  return nullptr;
}
abi::error* device_get_description(abi::description_of_device* a) {
  a->description = as<abi::device_description>(a->device);
  return nullptr;
}
abi::error* device_description_id(abi::id_of_device* a) {
  a->id = *as<int>(a->description);
  return nullptr;
}
abi::error* client_process_index(abi::process_of_client* a) {
  a->process = as<client>(a->client)->process;
  return nullptr;
}
abi::error* device_description_process_index(abi::process_of_device* a) {
  a->process = *as<int>(a->description) / 10;
  return nullptr;
}
abi::error* device_description_kind(abi::text_of<abi::device_description>* a) {
  a->text = "mock", a->size = 4;
  return nullptr;
}
abi::error* load(const std::string& text, std::vector<int> devices, abi::loaded_executable** to) {
  if (const std::size_t at = text.find("MISTAKE"); at != text.npos) {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at; ++i) text[i] == '\n' ? (++line, column = 1) : ++column;
    return failure(2, "-:" + std::to_string(line) + ":" + std::to_string(column) + ": error: a mistake\n");
  }
  module m = read_module(text);
  m.devices = std::move(devices);
  *to = as<abi::loaded_executable>(created("loaded executable", new module(std::move(m))));
  return nullptr;
}
abi::error* client_compile(abi::client_compile* a) {
  if (std::string(a->program->format, a->program->format_size) != "mlir") return failure(3, "unknown format");
  if (a->options_size == 0) violation("empty options of a compilation");
  if (const std::string& unknown = observed().unknown_option;
      !unknown.empty() && std::string_view(a->options, a->options_size).find(unknown) != std::string_view::npos)
    return failure(3, "No such compile option: '" + unknown + "'");
  return load({a->program->code, a->program->code_size}, read_options(a->options, a->options_size), &a->executable);
}
abi::error* client_buffer_from_host_buffer(abi::buffer_from_host* a) {
  auto* b = created("buffer",
                    new buffer{as<client>(a->client), *as<int>(a->device), {int(a->type), {a->extents, a->extents + a->rank}}});
  ++b->of->buffers;
  b->holds->bytes.resize(b->type.bytes());
  b->holds->from = a->data;
  auto* e = created("event", new event{.hangs = observed().uploads_hang});
  if (a->semantics == abi::host_semantics::immutable_only_during_call)
    b->holds->arrive();
  else
    e->arriving = b->holds;
  observed().order.emplace_back("upload");
  a->buffer = as<abi::buffer>(b);
  a->done_with_host_buffer = as<abi::event>(e);
  return nullptr;
}
abi::error* executable_destroy(abi::executable_only* a) {
  destroyed("executable", as<module>(a->executable));
  return nullptr;
}
abi::error* executable_num_outputs(abi::number_of_executable* a) {
  a->number = std::int64_t(as<module>(a->executable)->results.size());
  return nullptr;
}
abi::error* executable_serialize(abi::serialize* a) {
  const module* m = reinterpret_cast<const module*>(a->executable);
  auto* bytes = new std::string("mock");
  for (int d : m->devices) *bytes += ' ' + std::to_string(d);
  *bytes += '\n' + m->text;
  a->bytes = bytes->data(), a->size = bytes->size(), a->owner = bytes;
  a->destroy = [](void* owner) { delete static_cast<std::string*>(owner); };
  return nullptr;
}
abi::error* executable_deserialize_and_load(abi::deserialize_and_load* a) {
  const std::string bytes(a->bytes, a->size);
  const std::size_t end = bytes.find('\n');
  if (!bytes.starts_with("mock ") || end == bytes.npos) return failure(3, "no executable of this plugin");
  std::istringstream ids(bytes.substr(5, end - 5));
  std::vector<int> devices;
  for (int d; ids >> d;) devices.push_back(d);
  return load(bytes.substr(end + 1), devices, &a->executable);
}
abi::error* loaded_executable_destroy(abi::loaded_executable_only* a) {
  destroyed("loaded executable", as<module>(a->executable));
  return nullptr;
}
abi::error* loaded_executable_get_executable(abi::executable_of_loaded* a) {
  a->executable = as<abi::executable>(created("executable", new module(*as<module>(a->loaded))));
  return nullptr;
}

void add_one(std::vector<std::byte>& bytes, int type) {
  const auto add = [&](auto zero) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof zero) {
      std::memcpy(&zero, &bytes[i], sizeof zero);
      zero += 1;
      std::memcpy(&bytes[i], &zero, sizeof zero);
    }
  };
  abi::element(type) == abi::element::f64 ? add(0.0) : add(0.0f);
}
void count_up(std::vector<std::byte>& bytes, int type) {
  const auto count = [&](auto number) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof number, number += 1) std::memcpy(&bytes[i], &number, sizeof number);
  };
  abi::element(type) == abi::element::f64 ? count(0.0) : count(0.0f);
}

void contents::arrive() {
  if (from) std::memcpy(bytes.data(), std::exchange(from, nullptr), bytes.size());
  if (const std::shared_ptr<execution> by = made_by) by->end();
}
void execution::end() {
  if (has_ended) return;
  std::string ignored;
  for (int p = 0; spans && p < spans->processes; ++p)
    if (abi::error* const e = spans->get(key(rendezvous, p), ignored)) destroyed("error", e), fails = true;
  if (std::exchange(has_ended, true)) return;
  for (const auto& c : in) {
    c->arrive();
    fails |= c->has_failed;
    --c->users;
  }
  observed().order.push_back("end " + std::to_string(number));
  observed().last_arguments.clear();
  const std::size_t arguments = what.arguments.size(), results = what.results.size();
  for (std::size_t i = 0; i < arguments; ++i) observed().last_arguments.push_back(in[i]->bytes);
  for (std::size_t at = 0; at < out.size(); ++at) {
    const std::shared_ptr<contents> c = out[at].lock();
    if (!c) continue;
    c->made_by = nullptr;
    c->has_failed = fails;
    const tensor& type = what.results[at % results];
    count_up(c->bytes, type.type);
    for (std::size_t i = 0; i < arguments; ++i)
      if (what.donated_to[i] == int(at % results)) {
        c->bytes = in[at / results * arguments + i]->bytes;
        add_one(c->bytes, type.type);
      }
  }
}

abi::error* loaded_executable_execute(abi::execute* a) {
  module m = *as<module>(a->executable);
  client* const self = a->device_count && a->argument_count && a->arguments[0][0] ? as<buffer>(a->arguments[0][0])->of : nullptr;
  const bool spans = self && self->processes > 1 && m.devices.size() > self->devices.size();
  if (spans) std::erase_if(m.devices, [self](int id) { return id / 10 != self->process; });
  if (a->device_count != m.devices.size()) return failure(3, "a list of arguments for each device");
  if (a->argument_count != m.arguments.size()) return failure(3, "another number of arguments");
  if (a->options->head.struct_size < sizeof(abi::execute_options)) return failure(3, "short options");
  for (std::size_t d = 0; d < a->device_count; ++d)
    for (std::size_t i = 0; i < a->argument_count; ++i) {
      buffer* const b = as<buffer>(a->arguments[d][i]);
      const std::string which = "argument " + std::to_string(i) + " of replica " + std::to_string(d);
      if (!b) return failure(3, which + " is null");
      if (b->is_donated) return failure(3, which + " has been donated");
      if (b->holds->has_failed) return failure(13, which + " comes from an execution that failed");
      if (!(b->type == m.arguments[i])) return failure(3, which + " has another type");
      if (b->device != m.devices[d]) return failure(3, which + " lies on another device");
    }
  const auto run = std::make_shared<execution>(
      execution{++observed().executions, m, {}, {}, std::exchange(observed().execution_fails, false)});
  observed().order.push_back("execute " + std::to_string(run->number));
  if (spans) {
    run->spans = self, run->rendezvous = ++self->executions;
    if (abi::error* const e = self->put(execution::key(run->rendezvous, self->process), run->identity())) return e;
  }
  for (std::size_t d = 0; d < a->device_count; ++d) {
    for (std::size_t i = 0; i < a->argument_count; ++i) {
      buffer* const b = as<buffer>(a->arguments[d][i]);
      b->is_donated = m.donated_to[i] >= 0;
      ++b->holds->users;
      run->in.push_back(b->holds);
    }
    for (std::size_t k = 0; k < m.results.size(); ++k) {
      client* const of = as<buffer>(a->arguments[0][0])->of;
      auto* out = created("buffer", new buffer{of, m.devices[d], m.results[k]});
      ++of->buffers;
      out->holds->bytes.resize(out->type.bytes());
      out->holds->made_by = run;
      run->out.push_back(out->holds);
      a->results[d][k] = as<abi::buffer>(out);
    }
    if (a->complete) a->complete[d] = as<abi::event>(created("event", new event{.ends = run}));
  }
  return nullptr;
}
abi::error* buffer_destroy(abi::buffer_only* a) {
  buffer* const b = as<buffer>(a->buffer);
  if (b->holds->from) violation("an array is destroyed before its bytes have come");
  if (b->holds->users > 0) violation("an array is destroyed while an execution uses it");
  --b->of->buffers;
  destroyed("buffer", b);
  return nullptr;
}
abi::error* buffer_dimensions(abi::extents_of_buffer* a) {
  const buffer* const b = as<buffer>(a->buffer);
  a->extents = b->type.extents.data(), a->rank = b->type.extents.size();
  return nullptr;
}
abi::error* buffer_is_deleted(abi::buffer_is_deleted* a) {
  a->is_deleted = as<buffer>(a->buffer)->is_donated;
  return nullptr;
}
abi::error* buffer_to_host_buffer(abi::buffer_to_host* a) {
  buffer* const b = as<buffer>(a->buffer);
  if (b->is_donated) return failure(3, "the array has been donated");
  if (!a->layout || a->layout->tiled.rank != b->type.extents.size()) return failure(3, "no layout");
  for (std::size_t i = 0; i < a->layout->tiled.rank; ++i)
    if (a->layout->tiled.minor_to_major[i] != std::int64_t(a->layout->tiled.rank - 1 - i)) return failure(3, "not row-major");
  if (a->size < b->holds->bytes.size()) return failure(3, "too little room");
  a->event = as<abi::event>(created("event", new event{.leaving = b->holds, .to = a->to}));
  return nullptr;
}

/// A topology "N" has N devices, in descending order of their ids.
struct topology {
  std::vector<int> ids;
  std::vector<abi::device_description*> descriptions;
};
abi::error* topology_create(abi::topology_create* a) {
  const std::string name(a->name, a->name_size);
  if (name.empty() || name.find_first_not_of("0123456789") != name.npos) return failure(3, "no such topology: " + name);
  auto* t = created("topology", new topology);
  for (int id = std::stoi(name); id-- > 0;) t->ids.push_back(id);
  for (int& id : t->ids) t->descriptions.push_back(as<abi::device_description>(&id));
  a->topology = as<abi::topology>(t);
  return nullptr;
}
abi::error* topology_destroy(abi::topology_only* a) {
  destroyed("topology", as<topology>(a->topology));
  return nullptr;
}
abi::error* topology_platform_name(abi::text_of<abi::topology>* a) {
  a->text = "tpu", a->size = 3;
  return nullptr;
}
abi::error* topology_get_device_descriptions(abi::devices_of_topology* a) {
  const topology* const t = as<topology>(a->topology);
  a->descriptions = t->descriptions.data(), a->count = t->descriptions.size();
  return nullptr;
}
abi::error* compile(abi::compile* a) {
  abi::loaded_executable* loaded = nullptr;
  abi::error* const e = load({a->program->code, a->program->code_size}, read_options(a->options, a->options_size), &loaded);
  if (e) return e;
  a->executable = as<abi::executable>(created("executable", new module(*as<module>(loaded))));
  destroyed("loaded executable", as<module>(loaded));
  return nullptr;
}
/// A cost that XLA estimates, one that it cannot estimate, and one of another type.
abi::error* executable_get_cost_analysis(abi::cost_analysis* a) {
  static const std::vector<abi::named_value> costs = [] {
    std::vector<abi::named_value> all(3);
    const std::pair<const char*, std::size_t> names[] = {{"flops", 5}, {"optimal_seconds", 15}, {"name", 4}};
    for (std::size_t i = 0; i < all.size(); ++i) std::tie(all[i].name, all[i].name_size) = names[i];
    all[0].kind = all[1].kind = abi::value_kind::float32;
    all[0].float32 = 100, all[1].float32 = -2;
    return all;
  }();
  a->properties = costs.data(), a->count = costs.size();
  return nullptr;
}

// ---- the table

constexpr int slots = 118;
struct table {
  abi::api head{};
  void* more[slots];
};
std::size_t wanted_size[slots];
bool is_unchecked = false;

/// Checks the size of the arguments, as every plugin does, and fails if a test has requested it.
template <auto Function, const auto& F, class Arguments>
abi::error* checked(Arguments* a) {
  if (!is_unchecked && a->head.struct_size < wanted_size[F.slot])
    return failure(3, "Unexpected PJRT_Args size: expected " + std::to_string(wanted_size[F.slot]) + ", got " +
                          std::to_string(a->head.struct_size) + ". Check installed software versions.");
  if (abi::error* const e = injected(F.name)) return e;
  return Function(a);
}
template <auto Function, const auto& F, class Arguments>
void enter(table& t, abi::error* (*)(Arguments*)) {
  t.head.functions[F.slot] = reinterpret_cast<void*>(&checked<Function, F, Arguments>);
  wanted_size[F.slot] = F.least;
}

}  // namespace

const abi::api* make_table() {
  static table t;
  t = {};
  t.head.head.struct_size = sizeof t;
  t.head.major = 0, t.head.minor = 81;
  is_unchecked = false;
  t.head.functions[abi::functions::error_destroy.slot] = reinterpret_cast<void*>(&error_destroy);
  t.head.functions[abi::functions::error_message.slot] = reinterpret_cast<void*>(&error_message);
#define MOCK_PJRT_ENTER(name) enter<name, abi::functions::name>(t, &name)
  MOCK_PJRT_ENTER(error_get_code);
  MOCK_PJRT_ENTER(plugin_initialize);
  MOCK_PJRT_ENTER(event_destroy);
  MOCK_PJRT_ENTER(event_is_ready);
  MOCK_PJRT_ENTER(event_await);
  MOCK_PJRT_ENTER(client_create);
  MOCK_PJRT_ENTER(client_destroy);
  MOCK_PJRT_ENTER(client_process_index);
  MOCK_PJRT_ENTER(device_description_process_index);
  MOCK_PJRT_ENTER(client_platform_name);
  MOCK_PJRT_ENTER(client_platform_version);
  MOCK_PJRT_ENTER(client_devices);
  MOCK_PJRT_ENTER(client_addressable_devices);
  MOCK_PJRT_ENTER(device_get_description);
  MOCK_PJRT_ENTER(device_description_id);
  MOCK_PJRT_ENTER(device_description_kind);
  MOCK_PJRT_ENTER(client_compile);
  MOCK_PJRT_ENTER(client_buffer_from_host_buffer);
  MOCK_PJRT_ENTER(executable_destroy);
  MOCK_PJRT_ENTER(executable_num_outputs);
  MOCK_PJRT_ENTER(executable_get_cost_analysis);
  MOCK_PJRT_ENTER(executable_serialize);
  MOCK_PJRT_ENTER(executable_deserialize_and_load);
  MOCK_PJRT_ENTER(loaded_executable_destroy);
  MOCK_PJRT_ENTER(loaded_executable_get_executable);
  MOCK_PJRT_ENTER(loaded_executable_execute);
  MOCK_PJRT_ENTER(buffer_destroy);
  MOCK_PJRT_ENTER(buffer_dimensions);
  MOCK_PJRT_ENTER(buffer_is_deleted);
  MOCK_PJRT_ENTER(buffer_to_host_buffer);
  MOCK_PJRT_ENTER(topology_create);
  MOCK_PJRT_ENTER(topology_destroy);
  MOCK_PJRT_ENTER(topology_platform_name);
  MOCK_PJRT_ENTER(topology_get_device_descriptions);
  MOCK_PJRT_ENTER(compile);
#undef MOCK_PJRT_ENTER
  const char* const said = std::getenv("MOCK_PJRT");
  std::istringstream words(said ? said : "");
  std::string what;
  int slot = 0;
  if (words >> what; what == "minor")
    words >> t.head.minor;
  else if (what == "without" && words >> slot)
    t.head.functions[slot] = nullptr;
  else if (what == "size" && words >> slot)
    words >> wanted_size[slot];
  else if (what == "unchecked")
    is_unchecked = true;
  return &t.head;
}

}  // namespace mock_pjrt

extern "C" const abi::api* GetPjrtApi() { return mock_pjrt::make_table(); }
