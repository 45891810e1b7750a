// Files that programs read, and texts that processes compare, are the same in every locale: with a decimal comma and dots between
// thousands, files have the bytes of the locale C, and are read as in it. localedef makes such a locale; without localedef, or
// without its sources, the cases are skipped.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <locale>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <strata/base/json.hpp>
#include <strata/base/read_number.hpp>
#include <strata/callbacks/csv_logger.hpp>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/callbacks/model_checkpoint.hpp>
#include <strata/callbacks/profiler.hpp>
#include <strata/data.hpp>
#include <strata/data/core/position_file.hpp>
#include <strata/network/summary.hpp>
#include <strata/program/print_plan.hpp>
#include <strata/program/program_text.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/weights_file.hpp>
#include <strata/xla/emitter/emitter.hpp>
#include <string>
#include <vector>

#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::scratch_folder;
namespace fs = std::filesystem;

namespace {

// Functions of LeakSanitizer, if a program has it.
extern "C" [[gnu::weak]] void __lsan_disable();
extern "C" [[gnu::weak]] void __lsan_enable();

/// Sets the locale of the process and of its streams. glibc never frees its copies of LOCPATH.
void set_locale(const char* name) {
  if (__lsan_disable) __lsan_disable();
  std::locale::global(std::locale(name));  // calls setlocale
  if (__lsan_enable) __lsan_enable();
}

/// Sets a German locale for the process and its streams during its lifetime. False if there is none.
class german {
  scratch_folder folder_{"locale"};
  bool is_there_ = false;

 public:
  german() {
    const std::string path = folder_ / "de_DE.UTF-8";
    if (std::system(("localedef -i de_DE -f UTF-8 " + path + " >/dev/null 2>&1").c_str()) != 0) return;
    ::setenv("LOCPATH", folder_.path.c_str(), 1);
    set_locale("de_DE.UTF-8");
    std::ostringstream number;
    number << 1234.5;
    is_there_ = number.str() == "1.234,5" && std::stod("0,5") == 0.5;
    REQUIRE(is_there_);
  }
  ~german() {
    set_locale("C");
    ::unsetenv("LOCPATH");
  }
  explicit operator bool() const {
    if (!is_there_) MESSAGE("skipped: localedef, or the sources of the locale de_DE, are missing");
    return is_there_;
  }
};

using net = sequential<input<4>, dense<3, relu, kernel_regularizer<l2<>>>, dropout<0.25_r>, dense<2, softmax>>;
constexpr int samples_of_set = 1100;  // with a dot in this locale

auto some_data() {
  std::vector<float> x(4 * samples_of_set);
  std::vector<int> y(samples_of_set);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{1}.uniform(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(i % 2);
  return data::from_tensor_slices(data::array<float, shape{4}>(std::move(x)), y) | data::scale(0.5) | data::shuffle(1050);
}
adam optimizer() { return {.learning_rate = exponential_decay{0.01, 100, 0.5}}; }
auto some_trainer() { return trainer{net{}, optimizer(), sparse_categorical_crossentropy{}, accuracy{}, seed(1)}; }

/// Writes all files that must have the same bytes in each run.
void write_all(const fs::path& folder) {
  auto model = some_trainer();
  const std::string name = (folder / "{epoch}-{loss:.3f}-{accuracy}.safetensors").string();
  const auto kept = [&](training_state& s) {  // before backup_and_restore removes it
    if (s.epoch == 1) fs::copy_file(folder / "backup/snapshot.safetensors", folder / "snapshot.safetensors");
  };
  model.fit(some_data() | data::batch<4>, epochs(2), verbosity::off, backup_and_restore{folder / "backup"},
            lambda_callback{.on_epoch_end = kept}, model_checkpoint{name}, csv_logger{folder / "log.csv"});

  auto set = some_data() | data::batch<4>;
  auto at = set.begin();
  for (int i = 0; i < 260; ++i) ++at;
  data::save_position(set, folder / "position");
  data::save_npy(folder / "x.npy", data::array<float, shape{4}>(std::vector<float>(4 * samples_of_set, 0.5f)));

  using program = decltype(model)::program_type;
  std::ofstream(folder / "texts") << detail::text_of_program<program>() << '\n'
                                  << detail::text_of_optimizer(optimizer()) << '\n'
                                  << summary_of<net>() << plan_text<program, cpu>() << '\n'
                                  << stablehlo::prediction_module<program>({.rows = 2, .replicas = 1, .platform = {}}).text;
}

using files = std::map<std::string, std::string>;
files written() {
  const scratch_folder folder("locale-files");
  write_all(folder.path);
  files all;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path))
    if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      all[fs::relative(entry.path(), folder.path).string()] = {std::istreambuf_iterator<char>(file), {}};
    }
  return all;
}

}  // namespace

TEST_CASE("files, their names and descriptions have the bytes of the locale C") {
  const files expected = written();
  CHECK(expected.size() >= 7);
  const german locale;
  if (!locale) return;
  const files here = written();
  for (const auto& file : expected) {
    const auto& name = file.first;
    CAPTURE(name);
    CHECK(here.contains(name));
    if (here.contains(name)) CHECK(here.at(name) == file.second);
  }
  CHECK(here.size() == expected.size());
}

TEST_CASE("a trace is JSON in every locale") {
  const german locale;
  if (!locale) return;
  const scratch_folder folder("locale-trace");
  some_trainer().fit(some_data() | data::batch<64>, epochs(1), verbosity::off,
                     profiler{.skipped_steps = 0, .trace = folder / "trace.json", .prints = false});
  std::ifstream file(folder / "trace.json");
  CHECK(nlohmann::json::accept(std::string(std::istreambuf_iterator<char>(file), {})));
}

TEST_CASE("reals are read with a point in every locale") {
  const german locale;
  if (!locale) return;
  const std::string text = "0.5,5";
  double value = 0;
  CHECK(detail::read_real(text.data(), text.data() + text.size(), value).ptr == text.data() + 3);
  CHECK(value == 0.5);
}
