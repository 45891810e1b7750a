#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace strata::bench {

bool smoke_test = false;

struct options::state {
  explicit state(const char* description) : app(description) {
    app.add_flag("--smoke", smoke_test, "run with the smallest sizes, to show that the program works");
  }

  CLI::App app;
  std::string of_smoke;

  CLI::Option* shown(CLI::Option* option, const char* help) { return *help ? option : option->group(""); }
  template <class T>
  CLI::Option* add(const char* name, T& value, const char* help) {
    CLI::Option* option = app.add_option(name, value, help)->capture_default_str();
    if (option->get_expected_max() == 1) option->take_last();
    return shown(option, help);
  }
};

options::options(const char* description) : state_(std::make_unique<state>(description)) {}
options::~options() = default;

options& options::add(const char* name, int& value, const char* help) { return state_->add(name, value, help), *this; }
options& options::add(const char* name, double& value, const char* help) { return state_->add(name, value, help), *this; }
options& options::add(const char* name, std::string& value, const char* help, std::initializer_list<const char*> choices) {
  CLI::Option* option = state_->add(name, value, help);
  if (choices.size() > 0) option->check(CLI::IsMember(std::vector<std::string>(choices.begin(), choices.end())));
  return *this;
}
options& options::add(const char* name, std::vector<std::string>& values, const char* help) {
  return state_->shown(state_->app.add_option(name, values, help), help), *this;
}
options& options::add_flag(const char* name, bool& value, const char* help) {
  return state_->shown(state_->app.add_flag(name, value, help), help), *this;
}
options& options::smoke(const char* arguments) { return state_->of_smoke = arguments, *this; }

void options::parse(int argc, char** argv) {
  std::vector<std::string> given(argv + 1, argv + argc), arguments;
  if (std::ranges::find(given, "--smoke") != given.end()) {
    std::istringstream words(state_->of_smoke);
    for (std::string word; words >> word;) arguments.push_back(word);
  }
  arguments.insert(arguments.end(), given.begin(), given.end());
  std::ranges::reverse(arguments);  // as CLI11 takes them
  try {
    state_->app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    std::exit(state_->app.exit(e) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);  // CLI11 reports --help as an exception
  }
}

}  // namespace strata::bench
