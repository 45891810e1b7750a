// A plugin of the PJRT C interface: how it is found and loaded, and the errors if one is missing, old or broken.
// needs: mock_pjrt
#include <doctest/doctest.h>

#include <cstdlib>
#include <mock_pjrt.hpp>
#include <strata/xla/pjrt/find_plugin.hpp>
#include <strata/xla/pjrt/options.hpp>
#include <strata/xla/pjrt/plugin.hpp>

#include "error_of.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::test;
using mock_pjrt::observed;

namespace {

struct with_variable {
  const char* name;
  with_variable(const char* name, const std::string& value) : name(name) { ::setenv(name, value.c_str(), 1); }
  ~with_variable() { ::unsetenv(name); }
};

/// The error when a mock is loaded whose table is made as these words determine. Each is a new file: a plugin is loaded once.
std::string error_of_plugin(const std::string& words) {
  static int number = 0;
  const scratch_folder folder("pjrt_plugin");
  const auto file = folder / ("plugin" + std::to_string(number++) + ".so");
  std::filesystem::copy_file(MOCK_PJRT, file);
  const with_variable said("MOCK_PJRT", words);
  return folder.without_folder(error_of([&] { pjrt::plugin::load(file); }));
}

}  // namespace

TEST_CASE("a plugin is loaded once, whatever name it is given") {
  const pjrt::plugin& p = pjrt::plugin::load(MOCK_PJRT);
  const scratch_folder folder("pjrt_plugin");
  std::filesystem::create_symlink(MOCK_PJRT, folder / "link.so");
  CHECK(&pjrt::plugin::load(folder / "link.so") == &p);
  CHECK(p.minor_version() == 81);
  CHECK(observed().alive["error"] == 0);  // those that told the sizes
}

TEST_CASE("a file that is no plugin is refused with its name") {
  const scratch_folder folder("pjrt_plugin");
  CHECK(contains(error_of([&] { pjrt::plugin::load(folder / "none.so"); }), "none.so: cannot open shared object file"));
  CHECK(contains(error_of([&] { pjrt::plugin::load(folder.write("text.so", "text")); }), "text.so: file too short"));
  CHECK(contains(error_of([&] { pjrt::plugin::load("libm.so.6"); }),
                 "libm.so.6 is not a PJRT plugin: it has no function GetPjrtApi"));
}

TEST_CASE("a plugin with another interface is refused when it is loaded") {
  CHECK(error_of_plugin("") == "no error");
  CHECK(contains(error_of_plugin("minor 40"), "has version 0.40 of the PJRT interface, but strata supports 0.57 and newer of 0"));
  CHECK(error_of_plugin("minor 400") == "no error");
  // Execute's arguments with a field more than the zeros that strata sends, and with too few for it.
  CHECK(error_of_plugin("size 55 96") == "no error");
  CHECK(contains(error_of_plugin("size 55 1000"),
                 "expects 1000 bytes of arguments for loaded_executable_execute, but strata supports"));
  CHECK(contains(error_of_plugin("size 55 40"), "expects 40 bytes of arguments for loaded_executable_execute"));
  CHECK(contains(error_of_plugin("unchecked"), "does not check the size of the arguments of event_destroy"));
  CHECK(contains(error_of_plugin("without 1"), "cannot report its errors"));
}

TEST_CASE("a missing function is told when it is called") {
  const scratch_folder folder("pjrt_plugin");
  const auto file = folder / "without_client.so";
  std::filesystem::copy_file(MOCK_PJRT, file);
  const with_variable said("MOCK_PJRT", "without 10");
  const pjrt::plugin& p = pjrt::plugin::load(file);
  pjrt::abi::padded<pjrt::abi::client_create> arguments;
  CHECK(contains(error_of([&] { p.call("begin", pjrt::abi::functions::client_create, arguments); }),
                 "without_client.so has no function client_create"));
}

TEST_CASE("a function that a plugin need not implement is no error, but its failure is one") {
  const scratch_folder folder("pjrt_plugin");
  const auto file = folder / "without_cost.so";
  std::filesystem::copy_file(MOCK_PJRT, file);
  const with_variable said("MOCK_PJRT", "without 46");
  pjrt::abi::padded<pjrt::abi::cost_analysis> absent;
  CHECK_FALSE(pjrt::plugin::load(file).call_if_implemented("cost", pjrt::abi::functions::executable_get_cost_analysis, absent));
  const pjrt::plugin& p = pjrt::plugin::load(MOCK_PJRT);
  pjrt::abi::padded<pjrt::abi::text_of<pjrt::abi::client>> arguments;
  const auto call = [&] { return p.call_if_implemented("name", pjrt::abi::functions::client_platform_name, arguments); };
  CHECK(call());
  observed().failing_function = "client_platform_name", observed().failing_code = int(pjrt::status::unimplemented);
  CHECK_FALSE(call());
  observed().failing_function = "client_platform_name", observed().failing_code = int(pjrt::status::internal);
  CHECK(contains(error_of(call), "reports (internal, code 13): injected"));
  CHECK(observed().alive["error"] == 0);
}

TEST_CASE("plugins are found by path, by the environment, and where pip puts them") {
  const scratch_folder folder("pjrt_plugin");
  CHECK(pjrt::find_plugin(MOCK_PJRT) == MOCK_PJRT);
  CHECK(error_of([] { pjrt::find_plugin("/none/plugin.so"); }) == "/none/plugin.so: there is no such plugin");
  CHECK(error_of([] { pjrt::find_plugin("gpu"); }) == "gpu: a plugin is a path, \"cpu\", \"tpu\" or \"cuda\"");
  const with_variable environment("VIRTUAL_ENV", folder.path.string());
  const std::string without = error_of([] { pjrt::find_plugin("cuda"); });  // a machine may have one
  CHECK((without == "no error" || contains(without, "in the packages of the Pythons in " + (folder / "lib").string())));
  const with_variable home("HOME", folder.path.string());
  const with_variable no_conda("CONDA_PREFIX", "");
  const auto cpu = folder.write("lib/python3.11/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so", "");
  const auto tpu = folder.write(".local/lib/python3.9/site-packages/libtpu/libtpu.so", "");
  CHECK(pjrt::find_plugin() == cpu);
  CHECK(pjrt::find_plugin("cpu") == cpu);
  CHECK(pjrt::find_plugin("tpu") == tpu);
  const auto newer = folder.write(".local/lib/python3.12/site-packages/libtpu/libtpu.so", "");
  folder.write(".local/lib/python3/dist-packages/libtpu/libtpu.so", "");
  CHECK(pjrt::find_plugin("tpu") == newer);
  {
    const with_variable conda("CONDA_PREFIX", (folder / "conda").string());
    const auto of_conda = folder.write("conda/lib/python3.10/site-packages/libtpu/libtpu.so", "");
    CHECK(pjrt::find_plugin("tpu") == of_conda);
    CHECK(pjrt::find_plugin("cpu") == cpu);
  }
  {
    const with_variable plugin("STRATA_XLA_PLUGIN", "tpu");
    CHECK(pjrt::find_plugin() == newer);
    const with_variable library("TPU_LIBRARY_PATH", "/none/libtpu.so");
    CHECK(error_of([] { pjrt::find_plugin(); }) == "TPU_LIBRARY_PATH is /none/libtpu.so: there is no such plugin");
  }
  const with_variable plugin("STRATA_XLA_PLUGIN", "/none/plugin.so");
  CHECK(error_of([] { pjrt::find_plugin(); }) == "STRATA_XLA_PLUGIN is /none/plugin.so: there is no such plugin");
}

TEST_CASE("the line of a module that an error names is found") {
  using pjrt::detail::line_named_by;
  CHECK(line_named_by("-:2:7: error: what", "one\n  two\nthree") == "  two");
  CHECK(line_named_by("<unknown>:0: error: x\nmodule.mlir:3:1: error", "one\ntwo\nthree") == "three");
  CHECK(line_named_by("-:9:1: error", "one\ntwo") == "");
  CHECK(line_named_by("Check failed: at 12:30", "one") == "");
}

TEST_CASE("options are bytes of a CompileOptionsProto") {
  const auto hex = [](const std::string& bytes) {
    std::string text;
    for (char c : bytes) text += detail::formatted("%02x", unsigned(c) & 255);
    return text;
  };
  const int eight[] = {0, 1, 2, 3, 4, 5, 6, 7}, large[] = {100000};
  CHECK(hex(pjrt::compile_options(eight)) ==
        "1a1620082801"
        "4a1008081001"
        "1a0a0a080001020304050607");
  CHECK(hex(pjrt::compile_options(large)) ==
        "1a1120012801"
        "4a0b08011001"
        "1a050a03a08d06");
}
