// The PJRT C interface, as far as strata uses it: the layout of a plugin's table of functions, and the arguments of each
// function. https://github.com/openxla/xla/blob/main/xla/pjrt/c/pjrt_c_api.h. Own declarations, because they have to fit plugins
// of all versions: the interface only grows. A plugin rejects arguments that are shorter than its own and accepts longer ones, so
// all arguments that strata passes end in zeros (`arguments`).
#pragma once
#include <cstddef>
#include <cstdint>

namespace strata::pjrt::abi {

/// The table has had its order since minor version 57.
inline constexpr int major_version = 0, least_minor_version = 57;

struct header {
  std::size_t struct_size = 0;
  void* extensions = nullptr;
};

struct api {
  header head;
  header version_head;
  int major, minor;
  void* functions[1];
};
static_assert(offsetof(api, major) == 32 && offsetof(api, functions) == 40);

/// A function of the table: the slot of its pointer, its name, and the bytes of its arguments that strata reads or sets. It
/// returns an error, or null.
template <class Arguments>
struct function {
  int slot;
  const char* name;
  std::size_t least;
};

/// Arguments followed by zeros, for fields that newer plugins have.
template <class Arguments>
struct padded {
  Arguments known{};
  std::byte newer[64]{};

  padded() { known.head.struct_size = sizeof(padded); }
  Arguments* operator->() { return &known; }
};

/// Incomplete types, used as distinct pointers only.
struct error;
struct event;
struct client;
struct device;
struct device_description;
struct memory;
struct executable;
struct loaded_executable;
struct buffer;
struct topology;

enum class value_kind : int { string, int64, int64_list, float32, boolean };

struct named_value {
  header head;
  const char* name = nullptr;
  std::size_t name_size = 0;
  value_kind kind{};
  union {
    const char* string = nullptr;
    std::int64_t int64;
    const std::int64_t* int64_list;
    float float32;
    bool boolean;
  };
  std::size_t size = 1;  // characters of a string, elements of a list
};
static_assert(offsetof(named_value, string) == 40 && sizeof(named_value) == 56);

enum class element : int { i1 = 1, i32 = 4, i64 = 5, ui32 = 8, ui64 = 9, f32 = 11, f64 = 12, bf16 = 13 };

enum class host_semantics : int { immutable_only_during_call, immutable_until_transfer_completes, zero_copy, mutable_zero_copy };

struct error_only {
  header head;
  abi::error* error;
};
struct error_message {
  header head;
  abi::error* error;
  const char* message;
  std::size_t message_size;
};
struct error_code {
  header head;
  abi::error* error;
  int code;
};
struct nothing {
  header head;
};
struct event_only {
  header head;
  abi::event* event;
};
struct event_is_ready {
  header head;
  abi::event* event;
  bool is_ready;
};

/// Makes an error of the plugin, for callbacks.
using callback_error = abi::error* (*)(int code, const char* message, std::size_t size);
struct key_value_get {
  header head;
  const char* key;
  std::size_t key_size;
  int timeout_in_ms;
  abi::callback_error* callback_error;
  void* argument;
  char* value;
  std::size_t value_size;
  void (*destroy_value)(char* value);
};
static_assert(offsetof(key_value_get, callback_error) == 40 && sizeof(key_value_get) == 80);
struct key_value_try_get {
  header head;
  const char* key;
  std::size_t key_size;
  abi::callback_error* callback_error;
  void* argument;
  char* value;
  std::size_t value_size;
  void (*destroy_value)(char* value);
};
static_assert(offsetof(key_value_try_get, callback_error) == 32 && sizeof(key_value_try_get) == 72);
struct key_value_put {
  header head;
  const char* key;
  std::size_t key_size;
  const char* value;
  std::size_t value_size;
  abi::callback_error* callback_error;
  void* argument;
};
static_assert(offsetof(key_value_put, callback_error) == 48 && sizeof(key_value_put) == 64);

template <class Arguments>
using callback = abi::error* (*)(Arguments*);
struct client_create {
  header head;
  const named_value* options;
  std::size_t option_count;
  callback<key_value_get> get;
  void* get_argument;
  callback<key_value_put> put;
  void* put_argument;
  abi::client* client;
  callback<key_value_try_get> try_get;
  void* try_get_argument;
};
static_assert(offsetof(client_create, client) == 64 && sizeof(client_create) == 88);

struct client_only {
  header head;
  abi::client* client;
};
/// A text owned by `of`.
template <class Handle>
struct text_of {
  header head;
  Handle* of;
  const char* text;
  std::size_t size;
};
struct devices_of_client {
  header head;
  abi::client* client;
  abi::device** devices;
  std::size_t count;
};
struct program {
  header head;
  const char* code;
  std::size_t code_size;
  const char* format;
  std::size_t format_size;
};
static_assert(offsetof(program, format_size) == 40);
struct client_compile {
  header head;
  abi::client* client;
  const abi::program* program;
  const char* options;
  std::size_t options_size;
  abi::loaded_executable* executable;
};
static_assert(sizeof(client_compile) == 56);

struct buffer_from_host {
  header head;
  abi::client* client;
  const void* data;
  element type;
  const std::int64_t* extents;
  std::size_t rank;
  const std::int64_t* strides;
  std::size_t stride_count;
  host_semantics semantics;
  abi::device* device;
  abi::memory* memory;
  void* device_layout;
  abi::event* done_with_host_buffer;
  abi::buffer* buffer;
};
static_assert(offsetof(buffer_from_host, device) == 80 && sizeof(buffer_from_host) == 120);

struct id_of_device {
  header head;
  abi::device_description* description;
  int id;
};
struct process_of_device {
  header head;
  abi::device_description* description;
  int process;
};
struct process_of_client {
  header head;
  abi::client* client;
  int process;
};
struct description_of_device {
  header head;
  abi::device* device;
  abi::device_description* description;
};
struct executable_only {
  header head;
  abi::executable* executable;
};
struct loaded_executable_only {
  header head;
  abi::loaded_executable* executable;
};
struct executable_of_loaded {
  header head;
  abi::loaded_executable* loaded;
  abi::executable* executable;
};
struct number_of_executable {
  header head;
  abi::executable* executable;
  std::int64_t number;
};
struct cost_analysis {
  header head;
  abi::executable* executable;
  std::size_t count;
  const named_value* properties;
};
struct serialize {
  header head;
  const abi::executable* executable;
  const char* bytes;
  std::size_t size;
  void* owner;
  void (*destroy)(void* owner);
};
static_assert(sizeof(serialize) == 56);
struct deserialize_and_load {
  header head;
  abi::client* client;
  const char* bytes;
  std::size_t size;
  abi::loaded_executable* executable;
  const char* options;
  std::size_t options_size;
};
static_assert(sizeof(deserialize_and_load) == 64);

struct execute_options {
  header head;
  void** send_callbacks;
  void** receive_callbacks;
  std::size_t send_count, receive_count;
  int launch_id;
  const std::int64_t* not_donated;
  std::size_t not_donated_count;
  void* context;
  const char* call_location;
  std::size_t task_count;
  int* tasks;
  std::int64_t* incarnations;
};
static_assert(offsetof(execute_options, not_donated) == 56 && sizeof(execute_options) == 112);
struct execute {
  header head;
  abi::loaded_executable* executable;
  execute_options* options;
  abi::buffer* const* const* arguments;  // [devices][arguments]
  std::size_t device_count, argument_count;
  abi::buffer** const* results;
  abi::event** complete;
  abi::device* device;
};
static_assert(offsetof(execute, complete) == 64 && sizeof(execute) == 80);

struct buffer_only {
  header head;
  abi::buffer* buffer;
};
struct buffer_is_deleted {
  header head;
  abi::buffer* buffer;
  bool is_deleted;
};
struct extents_of_buffer {
  header head;
  abi::buffer* buffer;
  const std::int64_t* extents;
  std::size_t rank;
};
struct tiled_layout {
  header head;
  const std::int64_t* minor_to_major;
  std::size_t rank;
  const std::int64_t* tile_extents;
  const std::size_t* tile_sizes;
  std::size_t tile_count;
};
struct memory_layout {
  header head;
  tiled_layout tiled;
  int is_strided;
};
static_assert(offsetof(memory_layout, is_strided) == 72 && sizeof(memory_layout) == 80);
struct buffer_to_host {
  header head;
  abi::buffer* buffer;
  memory_layout* layout;
  void* to;
  std::size_t size;
  abi::event* event;
};
static_assert(sizeof(buffer_to_host) == 56);

struct topology_create {
  header head;
  const char* name;
  std::size_t name_size;
  const named_value* options;
  std::size_t option_count;
  abi::topology* topology;
};
static_assert(sizeof(topology_create) == 56);
struct topology_only {
  header head;
  abi::topology* topology;
};
struct devices_of_topology {
  header head;
  abi::topology* topology;
  abi::device_description* const* descriptions;
  std::size_t count;
};
struct compile {
  header head;
  abi::topology* topology;
  const abi::program* program;
  const char* options;
  std::size_t options_size;
  abi::client* client;
  abi::executable* executable;
};
static_assert(sizeof(compile) == 64);

/// The table. The first two return nothing.
namespace functions {
#define STRATA_PJRT_FUNCTION(slot, name, arguments, last) \
  inline constexpr function<arguments> name { slot, #name, offsetof(arguments, last) + sizeof(arguments{}.last) }
STRATA_PJRT_FUNCTION(0, error_destroy, abi::error_only, error);
STRATA_PJRT_FUNCTION(1, error_message, abi::error_message, message_size);
STRATA_PJRT_FUNCTION(2, error_get_code, abi::error_code, code);
STRATA_PJRT_FUNCTION(3, plugin_initialize, nothing, head);
STRATA_PJRT_FUNCTION(5, event_destroy, event_only, event);
STRATA_PJRT_FUNCTION(6, event_is_ready, abi::event_is_ready, is_ready);
STRATA_PJRT_FUNCTION(8, event_await, event_only, event);
STRATA_PJRT_FUNCTION(10, client_create, abi::client_create, client);
STRATA_PJRT_FUNCTION(11, client_destroy, client_only, client);
STRATA_PJRT_FUNCTION(12, client_platform_name, text_of<client>, size);
STRATA_PJRT_FUNCTION(13, client_process_index, process_of_client, process);
STRATA_PJRT_FUNCTION(14, client_platform_version, text_of<client>, size);
STRATA_PJRT_FUNCTION(15, client_devices, devices_of_client, count);
STRATA_PJRT_FUNCTION(16, client_addressable_devices, devices_of_client, count);
STRATA_PJRT_FUNCTION(20, client_compile, abi::client_compile, executable);
STRATA_PJRT_FUNCTION(22, client_buffer_from_host_buffer, buffer_from_host, buffer);
STRATA_PJRT_FUNCTION(23, device_description_id, id_of_device, id);
STRATA_PJRT_FUNCTION(24, device_description_process_index, process_of_device, process);
STRATA_PJRT_FUNCTION(26, device_description_kind, text_of<device_description>, size);
STRATA_PJRT_FUNCTION(29, device_get_description, description_of_device, description);
STRATA_PJRT_FUNCTION(40, executable_destroy, executable_only, executable);
STRATA_PJRT_FUNCTION(44, executable_num_outputs, number_of_executable, number);
STRATA_PJRT_FUNCTION(46, executable_get_cost_analysis, cost_analysis, properties);
STRATA_PJRT_FUNCTION(49, executable_serialize, serialize, destroy);
STRATA_PJRT_FUNCTION(50, loaded_executable_destroy, loaded_executable_only, executable);
STRATA_PJRT_FUNCTION(51, loaded_executable_get_executable, executable_of_loaded, executable);
STRATA_PJRT_FUNCTION(55, loaded_executable_execute, execute, complete);
STRATA_PJRT_FUNCTION(56, executable_deserialize_and_load, deserialize_and_load, executable);
STRATA_PJRT_FUNCTION(58, buffer_destroy, buffer_only, buffer);
STRATA_PJRT_FUNCTION(60, buffer_dimensions, extents_of_buffer, rank);
STRATA_PJRT_FUNCTION(68, buffer_is_deleted, abi::buffer_is_deleted, is_deleted);
STRATA_PJRT_FUNCTION(70, buffer_to_host_buffer, buffer_to_host, event);
STRATA_PJRT_FUNCTION(82, topology_create, abi::topology_create, topology);
STRATA_PJRT_FUNCTION(83, topology_destroy, topology_only, topology);
STRATA_PJRT_FUNCTION(84, topology_platform_name, text_of<topology>, size);
STRATA_PJRT_FUNCTION(86, topology_get_device_descriptions, devices_of_topology, count);
STRATA_PJRT_FUNCTION(89, compile, abi::compile, executable);
#undef STRATA_PJRT_FUNCTION
}  // namespace functions

}  // namespace strata::pjrt::abi
