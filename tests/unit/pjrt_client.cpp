// Clients, arrays and compiled modules of a PJRT plugin: ownership, donation, errors, and the cache on disk.
// needs: mock_pjrt
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mock_pjrt.hpp>
#include <numeric>
#include <strata/strata.hpp>
#include <strata/xla/compile_step.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/executable_cache.hpp>
#include <strata/xla/runtime/running_module.hpp>

#include "error_of.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;
using mock_pjrt::observed;
using stablehlo::role;

namespace {

const pjrt::plugin& mock() { return pjrt::plugin::load(MOCK_PJRT); }

/// Checks at the end of a test that no object is left and no rule was violated.
struct nothing_left {
  nothing_left() { observed() = {}; }
  ~nothing_left() {
    CHECK(observed().all_alive() == 0);
    CHECK(observed().violations == std::vector<std::string>());
  }
};

/// w' = f(w, x), sums = g(w, x) on some replicas; w is donated.
stablehlo::module_text step(int replicas) {
  const stablehlo::tensor_type w{stablehlo::element::f32, {3}}, x{stablehlo::element::f32, {2, 2}},
      sums{stablehlo::element::f32, {1, 2}};
  return {.text =
              "module @step {\nfunc.func public @main(%w: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %x: "
              "tensor<2x2xf32>) -> (tensor<3xf32>, tensor<1x2xf32>) {\n} }",
          .arguments = {{.what = role::parameter, .type = w, .donated_to = 0}, {.what = role::input, .type = x}},
          .results = {{.what = role::parameter, .type = w}, {.what = role::sums, .type = sums}},
          .replicas = replicas};
}
/// Calls a module and waits until it has ended.
struct run_of {
  detail::staged_steps batch;
  detail::module_call call;
  void operator()(detail::running_module& m, detail::device_state& state, const detail::host_arguments& from) {
    batch.forget();
    batch.add(m, from);
    m.begin(state, batch, 0, 1, call);
    call.wait(state);
  }
};
std::size_t place_of(const stablehlo::argument& a) { return a.what == role::parameter ? 0 : detail::running_module::no_state; }
template <class V>
std::span<const std::byte> bytes_of_array(const V& values) {
  return std::as_bytes(std::span(values));
}
std::vector<float> floats(const std::vector<std::byte>& from) {
  std::vector<float> to(from.size() / sizeof(float));
  std::memcpy(to.data(), from.data(), from.size());
  return to;
}
std::vector<float> read(const pjrt::buffer& b, const stablehlo::tensor_type& type) {
  std::vector<std::byte> to(type.bytes());
  b.copy_to_host(type, to).wait("read");
  return floats(to);
}

/// An array of three elements on each of two devices.
detail::device_state two_copies(const pjrt::client& c) {
  detail::device_state state(1, 2);
  for (int r = 0; r < 2; ++r)
    state.at(0, std::size_t(r)) = c.upload(bytes_of_array(std::vector<float>{1, 2, 3}), step(2).arguments[0].type, r);
  return state;
}

/// Made before every function-local static object, and so destroyed after it.
std::shared_ptr<const pjrt::client> global;

}  // namespace

TEST_CASE("a client may be destroyed when the process ends") {
  global = pjrt::client::of(mock(), {{"global", true}});
  CHECK(global->devices() == 4);
}

TEST_CASE("the devices of a client, and clients with options") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  CHECK(pjrt::client::of(mock()) == c);
  CHECK(c->platform() == "cpu");
  CHECK(c->devices() == 4);
  CHECK(std::vector(c->ids(4).begin(), c->ids(4).end()) == std::vector{0, 1, 5, 4});
  const auto eight = pjrt::client::of(mock(), {{"cpu_device_count", std::int64_t(8)}});
  CHECK(eight != c);
  CHECK(eight->devices() == 8);
}

TEST_CASE("a client whose devices cannot be told is given back") {
  const nothing_left end;
  observed().failing_function = "device_description_kind";
  CHECK(contains(error_of([] { pjrt::client::of(mock()); }), "describe the devices: the plugin libmock_pjrt.so reports"));
  CHECK(observed().calls["client_destroy"] == 1);
  CHECK(pjrt::client::of(mock())->devices() == 4);
}

TEST_CASE("a step takes over the memory of what it replaces, and leaves the batch to its owner") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  detail::running_module m(c, c->compile(step(2)), step(2), 2, place_of);
  detail::device_state state = two_copies(*c);
  run_of run;
  for (int i = 0; i < 3; ++i) {
    std::vector<float> x(8);
    std::iota(x.begin(), x.end(), float(10 * i));
    run(m, state, {.inputs = {x.data()}, .count = 4});
    CHECK(floats(observed().last_arguments[1]) == std::vector<float>(x.begin(), x.begin() + 4));
    CHECK(observed().alive["buffer"] == 2 + 2);  // weights and sums of two replicas
    CHECK(observed().alive["event"] == 2);       // of the copies of the batch
  }
  CHECK(read(state.at(0, 0), step(2).arguments[0].type) == std::vector<float>{4, 5, 6});
  CHECK(read(state.at(0, 1), step(2).arguments[0].type) == std::vector<float>{4, 5, 6});
  CHECK(read(run.call.result(1, 1), step(2).results[1].type) == std::vector<float>{0, 1});
  CHECK(state.at(0, 0).extents() == std::vector<std::int64_t>{3});
}

TEST_CASE("rows that a short batch does not have repeat the first one, or are zeros where a replica has none") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  detail::running_module m(c, c->compile(step(2)), step(2), 2, place_of);
  detail::device_state state = two_copies(*c);
  const std::vector<float> x{1, 2};
  run_of{}(m, state, {.inputs = {x.data()}, .count = 1});
  CHECK(floats(observed().last_arguments[1]) == std::vector<float>{1, 2, 1, 2});
  run_of{}(m, state, {.inputs = {x.data()}, .count = 0});
  CHECK(floats(observed().last_arguments[1]) == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("weights of samples that a batch does not have are ones") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  stablehlo::module_text weighted = step(2);
  weighted.arguments[1].what = role::sample_weight;
  detail::running_module m(c, c->compile(weighted), weighted, 2, place_of);
  detail::device_state state = two_copies(*c);
  run_of{}(m, state, {.count = 4});
  CHECK(floats(observed().last_arguments[1]) == std::vector<float>{1, 1, 1, 1});
}

TEST_CASE("errors: before a step the weights stay, during one they are lost") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  detail::running_module m(c, c->compile(step(2)), step(2), 2, place_of);
  detail::device_state state = two_copies(*c);
  const std::vector<float> x(8);
  const auto run = [&] { return error_of([&] { run_of{}(m, state, {.inputs = {x.data()}, .count = 4}); }); };
  for (const char* function : {"loaded_executable_execute", "client_buffer_from_host_buffer"}) {
    observed().failing_function = function;
    observed().failing_code = 8;
    CHECK(contains(run(), "the plugin libmock_pjrt.so reports (resource exhausted, code 8): injected"));
    CHECK(!state.is_lost);
    CHECK(observed().alive["event"] == 0);
  }
  CHECK(run() == "no error");
  CHECK(read(state.at(0, 0), step(2).arguments[0].type) == std::vector<float>{2, 3, 4});
  observed().execution_fails = true;
  CHECK(contains(run(), "execute: the plugin libmock_pjrt.so reports (internal, code 13): the device has failed"));
  CHECK(state.is_lost);
}

TEST_CASE("what is sent to a call that cannot begin is kept until it has arrived, or given up") {
  observed() = {};
  const auto c = pjrt::client::of(mock(), {{"given_up", true}});  // a client of its own, which stays
  detail::running_module m(c, c->compile(step(2)), step(2), 2, place_of);
  detail::device_state state = two_copies(*c);
  const std::vector<float> x(8);
  {
    run_of run;
    const auto fail_after = [&](int uploads) {
      observed().failing_function = "client_buffer_from_host_buffer";
      observed().failing_after = uploads;
      CHECK(contains(error_of([&] { run(m, state, {.inputs = {x.data()}, .count = 4}); }), "injected"));
    };
    fail_after(1);
    CHECK(observed().alive["buffer"] == 2 + 1);
    run.batch.forget();
    CHECK(observed().alive["buffer"] == 2);
    CHECK(observed().alive["event"] == 0);
    observed().uploads_hang = true;
    fail_after(1);
    observed().uploads_hang = false;
    REQUIRE(run.batch.sent().size() == 1);
    CHECK(!run.batch.sent()[0].is_ready());
    run.batch.give_up();
    CHECK(run.batch.steps() == 0);
    CHECK(run.batch.sent().empty());
    run(m, state, {.inputs = {x.data()}, .count = 4});
  }
  CHECK(observed().alive["buffer"] == 2 + 1);
  CHECK(observed().alive["event"] == 1);
  CHECK(observed().violations == std::vector<std::string>());
}

TEST_CASE("an array that was donated is not read") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  const pjrt::executable e = c->compile(step(1));
  const pjrt::buffer w = c->upload(bytes_of_array(std::vector<float>(3)), step(1).arguments[0].type, 0),
                     x = c->upload(bytes_of_array(std::vector<float>(4)), step(1).arguments[1].type, 0);
  CHECK(!w.is_donated());
  pjrt::abi::buffer* const in[] = {w.handle(), x.handle()};
  pjrt::abi::buffer* out[2];
  pjrt::abi::buffer* const* arguments[] = {in};
  pjrt::abi::buffer** results[] = {out};
  pjrt::abi::event* done[1];
  e.run(arguments, 2, results, done);
  pjrt::event(mock(), done[0]).wait("execute");
  const pjrt::buffer first(c, out[0]), second(c, out[1]);
  CHECK(w.is_donated());
  CHECK(contains(error_of([&] { read(w, step(1).arguments[0].type); }), "the array has been donated"));
  CHECK(contains(error_of([&] { e.run(arguments, 2, results, done); }), "argument 0 of replica 0 has been donated"));
}

TEST_CASE("sizes are checked before a plugin sees them") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  const stablehlo::tensor_type type{stablehlo::element::bf16, {2, 3}};
  CHECK(error_of([&] { c->upload(bytes_of_array(std::vector<float>(5)), type, 0); }) ==
        "upload: 20 bytes for a tensor<2x3xbf16> of 12");
  CHECK(error_of([&] { c->compile(step(5)); }) == "the module is for 5 replicas, but the plugin libmock_pjrt.so has 4 devices");
  CHECK(error_of([&] { c->compile(step(0)); }) == "the module is for 0 replicas, but the plugin libmock_pjrt.so has 4 devices");
  stablehlo::module_text fewer = step(1);
  fewer.results.pop_back();
  CHECK(error_of([&] { c->compile(fewer); }) == "the compiled module has 2 results instead of 1");
}

TEST_CASE("a compiled module that cannot be looked at is given back") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  for (const char* function : {"loaded_executable_get_executable", "executable_num_outputs"}) {
    observed().failing_function = function;
    CHECK(contains(error_of([&] { c->compile(step(1)); }), "look at a compiled module: the plugin libmock_pjrt.so reports"));
    CHECK(observed().alive["loaded executable"] == 0);
  }
}

TEST_CASE("clients of several processes find each other through values, and have all devices in one order") {
  const nothing_left end;
  struct values final : pjrt::value_store {
    std::map<std::string, std::string> all{{"devices of 0", "2"}, {"devices of 2", "3"}};
    void set(const std::string& key, const std::string& value) override { all[key] = value; }
    std::string get(const std::string& key, std::chrono::milliseconds) override {
      if (!all.contains(key)) throw_error({"no process has set ", key});
      return all[key];
    }
  };
  const auto store = std::make_shared<values>();
  const auto client_of = [&](std::int64_t processes) {
    return pjrt::client::among_processes(mock(), {{"num_nodes", processes}, {"node_id", std::int64_t(1)}}, store);
  };
  const auto c = client_of(3);
  CHECK(store->all["devices of 1"] == "2");
  CHECK(c->devices_of_all_hosts() == 7);
  CHECK(c->devices() == 2);
  CHECK(c->first_of_all() == 2);
  CHECK(std::ranges::equal(c->ids(7), std::vector{0, 1, 10, 11, 20, 21, 22}));
  CHECK(std::ranges::equal(c->ids(2), std::vector{10, 11}));  // in the order of processes, which is not that of the plugin
  CHECK((c->spans_processes(7) && !c->spans_processes(2)));
  CHECK(error_of([&] { c->compile(step(3)); }) == "the module is for 3 replicas, but the plugin libmock_pjrt.so has 2 devices");
  CHECK(error_of([&] { client_of(4); }) ==
        "use the devices: the plugin libmock_pjrt.so reports (deadline exceeded, code 4): no process has set devices of 3");
}

TEST_CASE("an error of compiling shows the line of the module") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  stablehlo::module_text wrong = step(1);
  wrong.text.insert(wrong.text.find("} }"), "  %z = MISTAKE\n");
  const std::string error = error_of<pjrt::plugin_error>([&] { c->compile(wrong); });
  CHECK(
      error ==
      "compile: the plugin libmock_pjrt.so reports (unknown, code 2): -:3:8: error: a mistake\nThe line of the module is:   %z = "
      "MISTAKE");
}

TEST_CASE("a module is compiled ahead of time for the first devices of a topology") {
  const nothing_left end;
  const pjrt::topology four(mock(), "4");
  CHECK(four.devices() == 4);
  CHECK(four.platform() == "tpu");
  const pjrt::compiled_ahead made = four.compile(step(2));
  CHECK(made.serialized.starts_with("mock 3 2\nmodule @step"));
  CHECK(made.cost == std::map<std::string, double>{{"flops", 100}});  // the plugin has no estimate of the others
  CHECK(error_of([&] { four.compile(step(8)); }) == "the module is for 8 replicas, but the topology has 4 devices");
  stablehlo::module_text wrong = step(1);
  wrong.text = "module @step {\n  MISTAKE\n}";
  CHECK(contains(error_of([&] { four.compile(wrong); }), "The line of the module is:   MISTAKE"));
  CHECK(contains(error_of([] { pjrt::topology(mock(), "moon"); }), "no such topology: moon"));
  for (const char* function : {"topology_get_device_descriptions", "device_description_id", "compile", "executable_serialize",
                               "executable_get_cost_analysis"}) {
    observed().failing_function = function;
    CHECK(contains(error_of([] { pjrt::topology(mock(), "4").compile(step(1)); }), "injected"));
  }
  // What a plugin does not support is left out.
  observed().failing_function = "executable_get_cost_analysis";
  observed().failing_code = 12;
  CHECK(four.compile(step(1)).cost.empty());
  observed().failing_function = "executable_serialize";
  CHECK(four.compile(step(1)).serialized.empty());
}

TEST_CASE("the step of a trainer is compiled for the platform of a topology") {
  const nothing_left end;
  using network = sequential<input<3>, dense<2, softmax>>;
  trainer model{network{}, sgd{}, sparse_categorical_crossentropy{}, accuracy{}};
  const pjrt::topology four(mock(), "4");
  const std::string all = compile_step(model, four, 7).serialized, one = compile_step(model, four, 8, 1).serialized;
  CHECK(all.starts_with("mock 3 2 1 0\n"));
  CHECK(contains(all, "tensor<2x3xf32>"));
  CHECK(contains(all, "all_reduce"));
  CHECK(contains(one, "tensor<8x3xf32>"));
  CHECK(!contains(one, "all_reduce"));
  CHECK(error_of([&] { compile_step(model, four, 0); }) == "compile_step: a batch of 0 samples on 4 replicas");
  CHECK(error_of([&] { compile_step(model, four, 8, 5); }) == "the module is for 5 replicas, but the topology has 4 devices");
  CHECK(contains(compile_step(model, four, std::numeric_limits<int>::max(), 2).serialized, "tensor<1073741824x3xf32>"));
}

TEST_CASE("an option of the compiler that a plugin does not know is left out") {
  const nothing_left end;
  const auto c = pjrt::client::of(mock());
  const auto compiled = [] { return observed().calls["client_compile"]; };
  const int before = compiled();
  c->compile(step(1));
  CHECK(compiled() == before + 1);
  observed().unknown_option = "xla_cpu_experimental_ynn_fusion_type";
  CHECK(c->compile(step(1)).results() == 2);
  CHECK(compiled() == before + 3);
  observed().unknown_option = "";
}

TEST_CASE("compiled modules are kept on disk, and made anew where they are damaged") {
  const nothing_left end;
  const scratch_folder folder("pjrt_client");
  const auto c = pjrt::client::of(mock());
  const pjrt::executable_cache cache(folder / "cache");
  const auto compiled = [] { return observed().calls["client_compile"]; };
  CHECK(cache.compile(*c, step(2)).results() == 2);
  CHECK(compiled() == 1);
  CHECK(cache.compile(*c, step(2)).results() == 2);
  CHECK(compiled() == 1);
  CHECK(cache.compile(*c, step(1)).results() == 2);  // another module: other options
  CHECK(compiled() == 2);
  CHECK(pjrt::executable_cache::key(*c, step(1)) != pjrt::executable_cache::key(*c, step(2)));

  const std::string file = "cache/" + pjrt::executable_cache::key(*c, step(2)) + ".xla";
  auto content = folder.read(file);
  content[content.size() / 2] ^= 1;
  folder.write(file, content);
  cache.compile(*c, step(2));
  CHECK(compiled() == 3);
  folder.write(file, "short");
  cache.compile(*c, step(2));
  CHECK(compiled() == 4);
  observed().failing_function = "executable_deserialize_and_load";  // as if by another version of the plugin
  cache.compile(*c, step(2));
  CHECK(compiled() == 5);
  cache.compile(*c, step(2));
  CHECK(compiled() == 5);
  observed().failing_function = "executable_serialize", observed().failing_code = 12;  // unimplemented: nothing to keep
  cache.compile(*c, step(3));
  cache.compile(*c, step(3));
  CHECK(compiled() == 7);
}

TEST_CASE("a compiled module is not taken where flags or options differ") {
  const nothing_left end;
  const auto key = [](const std::vector<pjrt::option>& options) {
    return pjrt::executable_cache::key(*pjrt::client::of(mock(), options), step(1));
  };
  std::vector<std::string> keys{key({}),
                                key({{"a", std::int64_t(1)}}),
                                key({{"a", true}}),
                                key({{"a", std::string("b")}}),
                                key({{"ab", std::string("")}}),
                                key({{"a", std::vector<std::int64_t>{1, 2}}})};
  CHECK(key({}) == keys[0]);
  for (const char* const variable : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) {
    const char* const before = std::getenv(variable);
    const std::string kept = before ? before : "";
    ::setenv(variable, "--xla_backend_optimization_level=0", 1);
    keys.push_back(key({}));
    before ? ::setenv(variable, kept.c_str(), 1) : ::unsetenv(variable);
  }
  const scratch_folder folder("pjrt_client");
  const char* const before = std::getenv("XLA_FLAGS");
  const std::string kept = before ? before : "", file = (folder / "flags").string();
  ::setenv("XLA_FLAGS", file.c_str(), 1);
  for (const char* const content : {"", "--xla_dump_to=a", "--xla_dump_to=b"}) {
    folder.write("flags", content);
    keys.push_back(key({}));
  }
  before ? ::setenv("XLA_FLAGS", kept.c_str(), 1) : ::unsetenv("XLA_FLAGS");
  CHECK(pjrt::executable_cache::flags_in_file(" " + file + "\n") == "--xla_dump_to=b");
  CHECK(pjrt::executable_cache::flags_in_file("--xla_dump_to=b").empty());
  CHECK(pjrt::executable_cache::flags_in_file("").empty());
  std::ranges::sort(keys);
  CHECK(std::ranges::adjacent_find(keys) == keys.end());
}

TEST_CASE("a cache whose folder cannot be made is one error, which names the folder") {
  const nothing_left end;
  const scratch_folder folder("pjrt_client");
  folder.write("file", "");
  const pjrt::executable_cache cache(folder / "file/cache");
  CHECK(folder.without_folder(error_of([&] { cache.compile(*pjrt::client::of(mock()), step(1)); })) ==
        "cannot create the folder file/cache: Not a directory");
}
