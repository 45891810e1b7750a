#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace strata::bench {

struct options::state {
  explicit state(const char* description) : app(description) {}

  CLI::App app;

  CLI::Option* shown(CLI::Option* option, const char* help) { return *help ? option : option->group(""); }
  template <class T>
  CLI::Option* add(const char* name, T& value, const char* help) {
    return shown(app.add_option(name, value, help)->capture_default_str(), help);
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

void options::parse(int argc, char** argv) {
  try {
    state_->app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(state_->app.exit(e) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);  // CLI11 reports --help as an exception
  }
}

}  // namespace strata::bench
