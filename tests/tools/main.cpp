// The main function of all doctest programs, and the reporter through which Meson counts their cases (TAP).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

std::FILE* tap = nullptr;

struct tap_reporter : doctest::IReporter {
  std::string name;
  int count = 0;

  explicit tap_reporter(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& test) override {
    name = test.m_name;
    for (char& c : name) {
      if (c == '#' || c == '\n') c = ' ';  // these characters would end a name in TAP
    }
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    std::fprintf(tap, "%s %d - %s\n", stats.testCaseSuccess ? "ok" : "not ok", ++count, name.c_str());
    std::fflush(tap);
  }
  void test_run_end(const doctest::TestRunStats&) override { std::fprintf(tap, "1..%d\n", count); }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

}  // namespace

REGISTER_LISTENER("tap", 1, tap_reporter);

int main(int argc, char** argv) {
  // What the tests print goes to the error stream, so that it cannot be taken for a result.
  tap = fdopen(dup(STDOUT_FILENO), "w");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return doctest::Context(argc, argv).run();
}
