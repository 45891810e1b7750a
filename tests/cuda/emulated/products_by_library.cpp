// Kernels that call cuBLASLt, against the reference and for any number of devices; and descriptions that the library refuses.
// needs: emulated_cuda
#include "libraries.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <strata/strata.hpp>
#include <string>
#include <thread>

using namespace strata;
using namespace strata::core;
using namespace strata::test;

#if defined(STRATA_CUBLASLT) || !defined(__CUDACC__)
namespace {
using machine::blas_epilogue, machine::blas_product, machine::factor_type, machine::library_product;

/// Compares the kernel that calls the library, also at sizes where the rule would not choose it.
template <class P, dense_settings S, shape In, class... A>
void compare_dense() {
  have_devices(1);
  using K = machine::library_dense_kernel<S, activation_of<A...>, P, In>;
  compare_kernel<K, P, In>(type_list<affine<S>, A...>{}, 2e-5, {{64, 64}, {201, 70}, {31, 64}, {130, 64}, {5, 4}}, drops_bits<P>);
}

constexpr dense_settings with_bias{.units = 24}, without_bias{.units = 37, .bias = false};
}  // namespace

TEST_CASE_TEMPLATE("dense layers by cuBLASLt", P, precision::f32, precision::tf32, precision::mixed_bf16) {
  const library_that has_all(true, true);
#if !defined(__CUDACC__)
  have_devices(1);
  machine::take_counts(0);
#endif
  compare_dense<P, with_bias, shape{40}>();
  compare_dense<P, without_bias, shape{33}, relu>();
  compare_dense<P, with_bias, shape{33}, relu>();
#if !defined(__CUDACC__)
  CHECK(machine::take_counts(0).library_calls > 0);
#endif
}
TEST_CASE("dense layers by cuBLASLt, with an activation that it does not have") {
  const library_that has_all(true, true);
  compare_dense<precision::f32, with_bias, shape{40}, tanh_activation>();
}
TEST_CASE("dense layers where the library has no epilogues, or no algorithm") {
  const library_that has_no_epilogues(true, false);
  compare_dense<precision::mixed_bf16, with_bias, shape{40}, relu>();
  compare_dense<precision::f32, with_bias, shape{40}>();
  const library_that has_nothing(false, false);
  compare_dense<precision::mixed_bf16, with_bias, shape{40}, relu>();
}

TEST_CASE("descriptions that describe no product") {
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  const blas_product good{factor_type::f32, 8, 6, 4, 2, {false, 8, 32, 16}, {false, 4, 24, 16}, {false, 8, 48, 16}, {}, 0, 4};
  const auto refusal = [&](auto&& change) {
    blas_product bad = good;
    change(bad);
    const std::string all = error_of([&] { (void)library_product::find(q, bad); });
    return all.substr(all.rfind(": ") + 2);
  };
  CHECK(library_product::find(q, good));
  CHECK(refusal([](auto& p) { p.k = 0; }) == "its extents and its count are at least 1");
  CHECK(refusal([](auto& p) { p.a.leading = 7; }) == "columns of a overlap");
  CHECK(refusal([](auto& p) { p.a.transposed = true, p.a.leading = 3; }) == "columns of a overlap");
  CHECK(refusal([](auto& p) { p.b.leading = 3; }) == "columns of b overlap");
  CHECK(refusal([](auto& p) { p.d.leading = 7; }) == "columns of d overlap");
  CHECK(refusal([](auto& p) { p.d.stride = 44; }) == "results of several products overlap");
  CHECK(refusal([](auto& p) { p.a.stride = 33; }) == "with this stride not every a is aligned");
  CHECK(refusal([](auto& p) { p.b.alignment = 12; }) == "an alignment is a power of two, and at least the size of an element");
  CHECK(refusal([](auto& p) { p.epilogue = blas_epilogue::bias_gradient; }) == "gradients of biases overlap");
  CHECK(error_of([&] { (void)library_product::find(q, {}); }).starts_with("a product of matrices (f32 0x0x0"));
}

TEST_CASE("addresses that are not aligned, or where no memory is") {
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  const blas_product what{factor_type::f32, 8, 6, 4, 1, {false, 8, 0, 16}, {false, 4, 0, 16}, {false, 8, 0, 16}, {}, 0, 4};
  const device_array<float> a(q, 32, 1.f), b(q, 24, 1.f), d(q, 48, 0.f), workspace(q, machine::blas_workspace, 0.f);
  const auto product = library_product::find(q, what);
  REQUIRE(product);
  product->run(q, {a.data(), b.data(), d.data(), nullptr, workspace.data()});
  CHECK(d.values() == std::vector<float>(48, 4));
  product->run(q, {a.data(), b.data(), d.data(), nullptr, workspace.data()}, true);
  CHECK(d.values() == std::vector<float>(48, 8));
  CHECK(error_of([&] {
          product->run(q, {a.data() + 1, b.data(), d.data(), nullptr, workspace.data()});
        }).ends_with("the address of a is not aligned, or null"));
  CHECK(error_of([&] {
          product->run(q, {a.data(), b.data(), d.data(), nullptr, workspace.data() + 32});
        }).ends_with("the workspace does not begin at a multiple of 256 bytes"));
#if !defined(__CUDACC__)
  CHECK(error_of([&] {
          product->run(q, {a.data(), b.data() + 4, d.data(), nullptr, workspace.data()});
        }).ends_with("b is not in memory of gpu(0)"));
  CHECK(error_of([&] {
          product->run(q, {a.data(), b.data(), d.data(), nullptr, nullptr});
        }).ends_with("the workspace is not in memory of gpu(0)"));
#endif
}

#if !defined(__CUDACC__)
TEST_CASE("an algorithm is chosen once; it is the fastest of those whose bits do not depend on the number of products") {
  const library_that has_all(true, true);
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  blas_product what{factor_type::f32, 8, 6, 100, 3, {false, 8, 800, 16}, {false, 100, 600, 16}, {false, 8, 48, 16}, {}, 0, 4};
  const auto first = library_product::find(q, what);
  machine::take_counts(0);
  what.count = 5;
  const auto other_count = library_product::find(q, what);
  CHECK(machine::take_counts(0).kernels == 0);
  REQUIRE((first && other_count));
  CHECK(first->algorithm().numbers[0] == std::uint64_t(machine::emulated_algorithm::in_blocks));
  CHECK(other_count->algorithm() == first->algorithm());
  // The bits that one of bfloat16 does not have decide as well.
  what.factors = factor_type::bf16, what.stores_bf16 = true;
  const auto rounded = library_product::find(q, what);
  REQUIRE(rounded);
  CHECK(rounded->algorithm() == first->algorithm());
}

namespace {
/// A folder for the time of a test.
struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("strata-choices-" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};
std::string text_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
}  // namespace

TEST_CASE(
    "choices are kept in a file; a damaged one is replaced; one that cannot be written is ignored, and so is one of something "
    "else") {
  const library_that has_all(true, true);
  const folder temporary;
  const auto file = temporary.path / "below" / "choices";
  auto& choices = machine::library_choices::the();
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  const blas_product what{factor_type::f32, 8, 6, 4, 1, {false, 8, 0, 16}, {false, 4, 0, 16}, {false, 8, 0, 16}, {}, 0, 4};
  blas_product other = what;
  other.k = 3;
  const auto kernels_to_find = [&](const blas_product& product) {
    machine::take_counts(0);
    REQUIRE(library_product::find(q, product));
    return machine::take_counts(0).kernels;
  };
  choices.use_file(file);
  CHECK(kernels_to_find(what) > 0);
  CHECK(kernels_to_find(other) > 0);
  choices.use_file(file);  // as a new process does
  CHECK(kernels_to_find(what) == 0);
  CHECK(kernels_to_find(other) == 0);

  const std::string good = text_of_file(file);
  for (const std::size_t at : {std::size_t{0}, good.size() / 3, good.size() / 2, good.size() - 3}) {
    std::string bad = good;
    bad[at] ^= 1;
    std::ofstream(file, std::ios::binary) << bad;
    choices.use_file(file);
    CHECK(kernels_to_find(what) > 0);
    CHECK(kernels_to_find(what) == 0);
  }
  for (const std::size_t size : {std::size_t{0}, good.size() / 2, good.size() - 1}) {
    std::ofstream(file, std::ios::binary) << good.substr(0, size);
    choices.use_file(file);
    CHECK(kernels_to_find(what) > 0);
  }

  choices.use_file(file);
  CHECK(kernels_to_find(what) == 0);
  {
    std::ofstream(temporary.path / "another", std::ios::binary) << good;
  }  // meanwhile a process that had chosen both has written its file
  std::filesystem::rename(temporary.path / "another", file);
  blas_product third = what;
  third.k = 2;
  CHECK(kernels_to_find(third) > 0);
  choices.use_file(file);
  for (const blas_product& each : {what, other, third}) CHECK(kernels_to_find(each) == 0);

  // While another process chooses, this one waits, and then reads what the other has written.
  std::filesystem::remove(file);
  const int lock = ::open((file.string() + ".lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  std::thread waits([&] {
    choices.use_file(file);
    CHECK(kernels_to_find(what) == 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::ofstream(file, std::ios::binary) << good;
  ::close(lock);
  waits.join();

  // If the other one does not finish, this process waits only once, and writes no file.
  std::filesystem::remove(file);
  const int hangs = ::open((file.string() + ".lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(hangs, LOCK_EX) == 0);
  choices.use_file(file, std::chrono::milliseconds(30));
  CHECK(kernels_to_find(what) > 0);
  CHECK(!std::filesystem::exists(file));
  ::close(hangs);
  CHECK(kernels_to_find(other) > 0);
  CHECK(!std::filesystem::exists(file));

  const std::string_view notes = "notes\n";
  std::ofstream(file, std::ios::binary) << notes;
  choices.use_file(file);
  CHECK(kernels_to_find(what) > 0);
  CHECK(kernels_to_find(what) == 0);
  CHECK(text_of_file(file) == notes);

  for (const std::filesystem::path& none : {file / "below a file", file.parent_path()}) {
    choices.use_file(none);
    CHECK(kernels_to_find(what) > 0);
    CHECK(kernels_to_find(other) > 0);
  }
}

namespace {
using wide = sequential<input<256>, dense<256, relu>, dense<3, softmax>>;

/// Weights after some steps, with a batch that has a leaf with fewer samples and one that is too small for the library.
template <class P>
std::vector<float> trained(const auto& strategy, long* library_calls = nullptr) {
  constexpr std::size_t count = 258 + 100;
  std::vector<float> x(count * 256);
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i) - 0.5);
  for (std::size_t i = 0; i < count; ++i) labels[i] = int(i % 3);
  trainer model{wide{}, adam{}, sparse_categorical_crossentropy{}, strategy, seed(7), P{}};
  model.fit(x, labels, epochs(2), batch_size(258), shuffle(false), verbosity::off);
  std::vector<float> predictions(count * 3);
  model.predict(x, predictions);
  if (library_calls) *library_calls = machine::take_counts(0).library_calls;
  const auto w = model.parameters();
  std::vector<float> all(w.begin(), w.end());
  all.insert(all.end(), predictions.begin(), predictions.end());
  return all;
}

/// The weights after a step with a leaf that has fewer samples, and the bytes of the device that were taken then.
std::vector<float> trained_in(std::size_t memory, std::size_t& bytes) {
  machine::emulate_devices(1, memory);
  constexpr std::size_t count = 129;
  const std::vector<float> x(count * 256, 0.5f);
  const std::vector<std::int32_t> labels(count, 1);
  trainer model{wide{}, sgd{}, sparse_categorical_crossentropy{}, one_device{gpu(0), {.leaves = 2}}, seed(7)};
  machine::take_counts(0);
  model.train_step({x.data(), labels.data(), int(count)});
  CHECK(machine::take_counts(0).library_calls > 0);
  const auto w = model.parameters();
  bytes = memory - machine::free_memory(0);
  return {w.begin(), w.end()};
}
}  // namespace

TEST_CASE("a library measures where a device has memory for the training only, and then computes it") {
  const library_that has_all(true, true);
  std::size_t bytes = 0;
  const auto expected = trained_in(std::size_t{64} << 20, bytes);
  machine::library_choices::the().use_file({});  // chooses again
  const auto found = trained_in(bytes, bytes);
  CHECK(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)) == 0);
}

TEST_CASE("where even the memory of the batch does not suffice to measure, a kernel of strata computes, and no file keeps that") {
  const library_that has_all(true, true);
  const folder temporary;
  machine::library_choices::the().use_file(temporary.path / "choices");
  machine::emulate_devices(1, std::size_t{1} << 20);
  const machine::queue q = cuda_device(0).make_queue();
  const blas_product what{factor_type::f32,    512, 512, 512, 1, {false, 512, 0, 16}, {false, 512, 0, 16},
                          {false, 512, 0, 16}, {},  0,   4};
  CHECK_THROWS_AS((void)library_product::find(q, what), no_memory_to_choose);
  CHECK(!library_product::find(q, what, true));
  CHECK(!library_product::find(q, what));  // chosen for this process
  machine::library_choices::the().use_file(temporary.path / "choices");
  CHECK_THROWS_AS((void)library_product::find(q, what), no_memory_to_choose);
}

TEST_CASE_TEMPLATE("a network with a layer of cuBLASLt: the numbers of the reference, the same bits on 1, 2, 4 and 8 devices", P,
                   precision::f32, precision::mixed_bf16) {
  const library_that has_all(true, true);
  const auto expected = trained<precision::f32>(one_device<reference>{{.threads = 1, .leaves = 4}});
  have_devices(1);
  long library_calls = 0;
  const auto one = trained<P>(on_devices(1), &library_calls);
  CHECK(library_calls > 0);
  CHECK(difference(one, std::vector<double>(expected.begin(), expected.end())) <
        (std::is_same_v<P, precision::f32> ? 1e-3 : 0.05));
  for (const int devices : {2, 4, 8}) {
    CAPTURE(devices);
    have_devices(devices, std::uint64_t(devices));
    const auto several = trained<P>(on_devices(devices));
    CHECK(std::memcmp(several.data(), one.data(), one.size() * sizeof(float)) == 0);
  }
}
#endif
#endif
