// Files of weights, which appear complete or not at all.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <strata/base/random.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_window.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/os.hpp>
#include <strata/io/unzipped_file.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/train/weights_file.hpp>

#include "error_of.hpp"
#include "posix.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {

using small = sequential<input<5, 5, 2>, conv2d<3, 2, channel_groups<1>>, batch_norm<>, flatten, dense<4, relu>, dense<3>>;
constexpr const auto& layout = layout_of<small::items>;

struct scratch {
  fs::path folder = fs::temp_directory_path() / ("strata-weights-" + std::to_string(io::os::process_id()));
  fs::path file = folder / "model.safetensors";
  scratch() { fs::create_directory(folder); }
  ~scratch() { fs::remove_all(folder); }
  std::size_t files() const { return std::size_t(std::distance(fs::directory_iterator(folder), {})); }
};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
std::vector<T> random_arena(std::uint64_t seed) {
  std::vector<T> arena(std::size_t(layout.size));
  for (std::size_t s = 0; s < std::size_t(layout.count); ++s)
    for (int i = 0; i < layout.slots[s].what.extents.size(); ++i)
      arena[std::size_t(layout.slots[s].offset + i)] = T(philox{seed}.uniform(s, std::uint64_t(i)));
  return arena;
}

template <class Network, class T>
std::string complaint(const fs::path& file, std::span<T> arena, convert_precision convert = convert_precision::no) {
  try {
    load_weights<Network, T>(file, arena, convert);
  } catch (const strata_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE_TEMPLATE("weights and state come back, under Keras' names and in its layouts", T, float, double) {
  const scratch s;
  const std::vector<T> saved = random_arena<T>(1);
  save_weights<small, T>(s.file, saved);
  std::vector<T> loaded(saved.size());
  load_weights<small, T>(s.file, loaded);
  CHECK(loaded == saved);

  const safetensors_file file(s.file);
  CHECK(file.entries().size() == 10);
  CHECK(file["conv2d/kernel"].extents == tensor_extents{2, 2, 2, 3});
  CHECK(file["batch_normalization/moving_variance"].extents == tensor_extents{3});
  CHECK(file["dense/kernel"].extents == tensor_extents{48, 4});
  CHECK(file["dense_1/bias"].extents == tensor_extents{3});
  CHECK(file.metadata().at("strata_weights_version") == "1");
}

TEST_CASE("a file of another network is refused, by name, and changes nothing") {
  const scratch s;
  save_weights<small, float>(s.file, random_arena<float>(1));
  using wider = sequential<input<5, 5, 2>, conv2d<3, 2>, batch_norm<>, flatten, dense<6, relu>, dense<3, no_bias>, dense<2>>;
  std::vector<float> arena(std::size_t(layout_of<wider::items>.size), 7.0f);
  CHECK(complaint<wider>(s.file, std::span(arena)) == s.file.string() +
                                                          " does not fit the network"
                                                          "\n  dense/kernel: the file has (48, 4), the network (48, 6)"
                                                          "\n  dense/bias: the file has (4,), the network (6,)"
                                                          "\n  dense_1/kernel: the file has (4, 3), the network (6, 3)"
                                                          "\n  dense_2/kernel: missing in the file"
                                                          "\n  dense_2/bias: missing in the file"
                                                          "\n  dense_1/bias: not in the network; the file has (3,)");
  CHECK(std::ranges::count(arena, 7.0f) == std::ssize(arena));

  using other = sequential<input<9>, dense<2>, dense<2>, dense<2>, dense<2>, dense<2>>;
  std::vector<float> others(std::size_t(layout_of<other::items>.size));
  CHECK(complaint<other>(s.file, std::span(others)).ends_with("\n  and 8 more"));
}

TEST_CASE("another precision is converted only if asked for") {
  const scratch s;
  const std::vector<float> saved = random_arena<float>(1);
  save_weights<small, float>(s.file, saved);
  std::vector<double> loaded(saved.size());
  CHECK(
      complaint<small>(s.file, std::span(loaded))
          .starts_with(s.file.string() +
                       " does not fit the network\n  conv2d/kernel: the file has F32, the network F64 (convert_precision::yes"));
  CHECK(std::ranges::count(loaded, 0.0) == std::ssize(loaded));
  load_weights<small, double>(s.file, loaded, convert_precision::yes);
  CHECK(std::ranges::equal(loaded, saved));

  save_weights<small, double>(s.file, random_arena<double>(2));
  std::vector<float> rounded(saved.size());
  load_weights<small, float>(s.file, rounded, convert_precision::yes);
  CHECK(rounded == random_arena<float>(2));

  const std::vector<std::int32_t> whole(24);
  write_safetensors(s.file, std::vector{safetensor::of("conv2d/kernel", {2, 2, 2, 3}, whole)});
  CHECK(complaint<small>(s.file, std::span(rounded), convert_precision::yes)
            .find("conv2d/kernel: the file has I32, the network F32\n") != std::string::npos);
}

TEST_CASE("a file of a later version is refused, one of no version is not") {
  const scratch s;
  using tiny = sequential<input<2>, dense<1, no_bias>>;
  const std::vector<float> values{1, 2};
  const std::vector tensors{safetensor::of("dense/kernel", {2, 1}, values)};
  std::vector<float> arena(std::size_t(layout_of<tiny::items>.size));
  write_safetensors(s.file, tensors, {{"strata_weights_version", "2"}});
  CHECK(complaint<tiny>(s.file, std::span(arena)) ==
        s.file.string() + ": weights of version '2', but this program reads version 1");
  write_safetensors(s.file, tensors);
  load_weights<tiny, float>(s.file, arena);
  CHECK(arena[1] == 2);
  CHECK_THROWS_WITH_AS((load_weights<tiny, float>(s.file, std::span(arena).first(2))),
                       "weights: 2 values, but the network's arena has 16", strata_error);
}

TEST_CASE("what cannot be written is said with the path and the system's words, and leaves no file") {
  const scratch s;
  const fs::path nowhere = s.folder / "missing" / "file";
  CHECK(error_of([&] { (void)io::write_file_atomically(nowhere, ""); }) ==
        "cannot write " + nowhere.string() + ": No such file or directory");
  CHECK(error_of([&] { (void)io::write_file_atomically(s.folder, ""); }) ==
        "cannot write " + s.folder.string() + ": Is a directory");
  io::write_file_atomically(s.file, "text");
  CHECK(content(s.file) == "text");
}

#ifdef STRATA_TEST_POSIX
TEST_CASE("an atomic file appears at its commit, with the permissions of the old one") {
  const scratch s;
  io::write_file_atomically(s.file, "old");
  fs::permissions(s.file, fs::perms(0640));
  {
    io::atomic_file unfinished(s.file);
    unfinished.write("new");
    CHECK(content(s.file) == "old");
    CHECK(s.files() <= 2);  // the new one may have no name yet
  }
  CHECK(content(s.file) == "old");
  CHECK(s.files() == 1);
  io::atomic_file finished(s.file);
  finished.write("ne");
  finished.write("w");
  finished.commit();
  CHECK(content(s.file) == "new");
  CHECK(s.files() == 1);
  CHECK(fs::status(s.file).permissions() == fs::perms(0640));
}

TEST_CASE("an atomic file in the current directory, and through a link") {
  const scratch s;
  const fs::path before = fs::current_path();
  fs::current_path(s.folder);
  io::write_file_atomically("here", "1");
  fs::current_path(before);
  CHECK(content(s.folder / "here") == "1");
  fs::create_symlink("here", s.folder / "link");
  io::write_file_atomically(s.folder / "link", "2");
  CHECK(fs::is_symlink(s.folder / "link"));
  CHECK(content(s.folder / "here") == "2");
}

TEST_CASE("what cannot be written beyond a limit, or below a device, leaves the old file") {
  const scratch s;
  CHECK_THROWS_WITH_AS(io::write_file_atomically("/dev/full/x", ""), "cannot write /dev/full/x: Not a directory", strata_error);
  const std::vector<std::byte> much(1 << 20);
  io::write_file_atomically(s.file, "old");
  rlimit old{}, small_files{};
  getrlimit(RLIMIT_FSIZE, &old);
  small_files = old;
  small_files.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small_files);
  try {
    io::atomic_file file(s.file);
    file.write(much);
    FAIL("a limit of 1000 bytes must stop it");
  } catch (const strata_error& e) {
    CHECK(e.what() == "cannot write " + s.file.string() + ": File too large");
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(content(s.file) == "old");
  CHECK(s.files() == 1);
}
#endif

TEST_CASE("a program without the header for Keras' files is told its name or that there is no file, and writes nothing") {
  const scratch s;
  std::vector<float> arena = random_arena<float>(1);
  for (const char* name : {"a.keras", "a.weights.h5", "a.h5"}) {
    const fs::path file = s.folder / name;
    const std::string words = file.string() +
                              ": files of Keras need #include <strata/interop/keras/keras_files.hpp> in one file of the program, "
                              "which then links libhdf5 and libzip";
    CHECK(error_of([&] { save_weights<small, float>(file, arena); }) == words);
    CHECK(complaint<small>(file, std::span(arena)) == "cannot read " + file.string() + ": No such file or directory");
  }
  CHECK(s.files() == 0);
}

TEST_CASE("the first bytes say what a file of weights is, not its name") {
  const scratch s;
  std::vector<float> arena(random_arena<float>(5)), other(arena.size());
  save_weights<small, float>(s.file, arena);
  for (const char* name : {"weights", "weights.h5", "weights.keras"}) {
    fs::copy_file(s.file, s.folder / name);
    CHECK(complaint<small>(s.folder / name, std::span(other)) == "");
    CHECK(other == arena);
  }
  const auto says = [&](const std::string& bytes) {
    std::ofstream(s.file, std::ios::binary) << bytes;
    return complaint<small>(s.file, std::span(other));
  };
  const std::string name = s.file.string(), rest(100, 'x');
  CHECK(says("\x89HDF\r\n\x1a\n" + rest).starts_with(name + " is an HDF5 file: files of Keras need #include"));
  CHECK(says("PK\3\4" + rest)
            .starts_with(name + " is a zip archive, as .keras files and those of PyTorch are: files of Keras need"));
  CHECK(says("\x1f\x8b" + rest) == name + ": compressed by gzip: decompress it first");
  CHECK(says(R"({"class_name": "Sequential", "config": {}})") ==
        name + ": a JSON text, such as an architecture of Keras, which has no weights");
  CHECK(says("version https://git-lfs.github.com/spec/v1\noid sha256:" + rest) ==
        name + ": a Git LFS pointer instead of the file, which `git lfs pull` fetches");
  CHECK(other == arena);
}

TEST_CASE("a Git LFS pointer in the place of a file is named by all that read files") {
  const scratch s;
  const std::string file = s.file.string();
  std::ofstream(file) << "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
  const std::string sentence = file + ": a Git LFS pointer instead of the file, which `git lfs pull` fetches";
  CHECK(error_of([&] { (void)safetensors_file(file); }) == sentence);
  CHECK(error_of([&] { (void)io::mapped_file(file); }) == sentence);    // .npy, CIFAR
  CHECK(error_of([&] { (void)io::unzipped_file(file); }) == sentence);  // IDX
  io::file_window window;                                               // CSV, TFRecord
  CHECK(error_of([&] { window.open(file, io::compression::none); }) == sentence);
}

TEST_CASE("a file of weights has a name") {
  std::vector<float> arena = random_arena<float>(1);
  CHECK(error_of([&] { save_weights<small, float>("", arena); }) == "weights: the name of the file is empty");
  CHECK(complaint<small>("", std::span(arena)) == "weights: the name of the file is empty");
}
