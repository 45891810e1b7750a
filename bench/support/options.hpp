// Command lines of the benchmarks. CLI11 is compiled once, in options.cpp.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace strata::bench {

/// Whether the program was started with --smoke: it then runs with the smallest sizes, only to show that it works.
extern bool smoke_test;

class options {
  struct state;
  std::unique_ptr<state> state_;

 public:
  explicit options(const char* description);
  ~options();
  options(const options&) = delete;
  options& operator=(const options&) = delete;

  /// An option with one value, "--seconds", or a positional argument, "name". The present value is the default. If `choices` are
  /// given, other values are refused. An empty help hides an option that the program passes to processes that it starts.
  options& add(const char* name, int& value, const char* help);
  options& add(const char* name, double& value, const char* help);
  options& add(const char* name, std::string& value, const char* help, std::initializer_list<const char*> choices = {});
  /// An option that may be given several times.
  options& add(const char* name, std::vector<std::string>& values, const char* help);
  options& add_flag(const char* name, bool& value, const char* help);
  /// The arguments that --smoke stands for; those of the command line override them.
  options& smoke(const char* arguments);

  /// Ends the program after --help, and with an error message after a wrong option.
  void parse(int argc, char** argv);
};

}  // namespace strata::bench
