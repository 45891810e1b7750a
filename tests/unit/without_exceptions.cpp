// Programs that are compiled without exceptions and without run-time type information.
// flags: -fno-exceptions -fno-rtti
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <strata/data.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>
#include <strata/train/weights_file.hpp>
#include <string>

using namespace strata;

namespace {
struct net : sequential<input<28, 28, 1>, flatten, dense<16, relu>, dense<10, softmax>> {};

/// The exit status of a process, and its output on standard error.
struct ended {
  int status;
  std::string said;
};

/// Calls f in a process of its own.
template <class F>
ended in_a_process(F f) {
  int channel[2];
  CHECK(::pipe(channel) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(channel[1], STDERR_FILENO);
    ::close(channel[0]);
    std::signal(SIGABRT, SIG_DFL);
    f();
    ::_exit(0);
  }
  ::close(channel[1]);
  ended result;
  char text[256];
  for (ssize_t n; (n = ::read(channel[0], text, sizeof text)) > 0;) result.said.append(text, static_cast<std::size_t>(n));
  ::close(channel[0]);
  CHECK(::waitpid(child, &result.status, 0) == child);
  return result;
}

void fit_an_empty_data_set() {
  trainer{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}}.fit(
      data::synthetic_digits(0) | data::batch<32>, verbosity::off);
}
}  // namespace

TEST_CASE("without exceptions a network trains as it does with them: views, threads and strategies") {
  auto digits = data::synthetic_digits(400, 3) | data::shuffle(400, {.seed = 1}) |
                data::map([](auto&& sample) { return sample; }, data::parallel(2)) | data::batch<32> | data::prefetch(2);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{cpus(2)}, seed(1)};
  const auto history = model.fit(digits, epochs(3), verbosity::off);
  CHECK(history["loss"].back() < history["loss"].front());
}

TEST_CASE("without exceptions an error is printed, and the program is aborted") {
  const ended by_default = in_a_process(fit_an_empty_data_set);
  CHECK(WIFSIGNALED(by_default.status));
  CHECK(WTERMSIG(by_default.status) == SIGABRT);
  CHECK(by_default.said.find("the data set is empty") != std::string::npos);
}

TEST_CASE("without exceptions an error goes to the handler that the program has set") {
  const ended handled = in_a_process([] {
    set_error_handler([](const std::exception& failure) {
      std::fprintf(stderr, "handled: %s", failure.what());
      ::_exit(3);
    });
    fit_an_empty_data_set();
  });
  CHECK(WIFEXITED(handled.status));
  CHECK(WEXITSTATUS(handled.status) == 3);
  CHECK(handled.said.starts_with("handled: "));

  const ended returned = in_a_process([] {
    set_error_handler([](const std::exception&) {});
    fit_an_empty_data_set();
  });
  CHECK(WIFSIGNALED(returned.status));
}

TEST_CASE("without exceptions a damaged file ends the program with an error message, too") {
  const std::string path = (std::filesystem::temp_directory_path() / ("strata-" + std::to_string(::getpid()))).string();
  std::ofstream(path, std::ios::binary) << std::string("\x08\0\0\0\0\0\0\0{\"a\":xx}", 16);
  const ended damaged = in_a_process([&] {
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
    model.load_weights(path);
  });
  std::remove(path.c_str());
  CHECK(WIFSIGNALED(damaged.status));
  CHECK(damaged.said.find(path + ": the header is not JSON") != std::string::npos);
}
