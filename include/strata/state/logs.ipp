// Definitions of logs.hpp.
#pragma once
#include <limits>

namespace strata {

STRATA_FUNCTION logs::logs(const logs& other) = default;
STRATA_FUNCTION logs::logs(logs&& other) noexcept = default;
STRATA_FUNCTION logs& logs::operator=(const logs& other) = default;
STRATA_FUNCTION logs& logs::operator=(logs&& other) noexcept = default;
STRATA_FUNCTION logs::~logs() = default;

STRATA_FUNCTION logs::logs(std::initializer_list<std::pair<std::string, double>> values) {
  for (const auto& value : values) set(value.first, value.second);
}

STRATA_FUNCTION void logs::set(std::string_view name, double value) {
  if (value != value) value = std::numeric_limits<double>::quiet_NaN();  // drops the sign of a nan, which would be printed
  for (auto& known : values_)
    if (known.first == name) {
      known.second = value;
      return;
    }
  values_.emplace_back(name, value);
}

STRATA_FUNCTION std::optional<double> logs::find(std::string_view name) const {
  for (const auto& known : values_)
    if (known.first == name) return known.second;
  return {};
}

STRATA_FUNCTION double logs::operator[](std::string_view name) const {
  if (const auto value = find(name)) return *value;
  throw_error(
      {"there is no '", name, "' in the logs", empty() ? ": they are empty" : detail::text_of({"; they have ", names()})});
}

STRATA_FUNCTION const std::vector<double>& logs::array(std::string_view name) const {
  std::string names;
  for (const auto& known : arrays_) {
    if (known.first == name) return known.second;
    names += detail::text_of({names.empty() ? ", but " : ", ", known.first});
  }
  throw_error({"there is no array '", name, "' in the logs", names.empty() ? ": they have none" : names});
}

STRATA_FUNCTION void logs::set_array(std::string_view name, std::vector<double> values) {
  for (auto& known : arrays_)
    if (known.first == name) {
      known.second = std::move(values);
      return;
    }
  arrays_.emplace_back(name, std::move(values));
}

STRATA_FUNCTION std::string logs::names() const {
  std::string out;
  for (const auto& value : values_) {
    if (!out.empty()) out += ", ";
    out += value.first;
  }
  return out;
}

STRATA_FUNCTION std::ostream& operator<<(std::ostream& out, const logs& l) {
  const char* between = "";
  for (const auto& value : l) {
    out << between << value.first << ": " << value.second;
    between = " - ";
  }
  return out;
}

STRATA_FUNCTION training_history::training_history(const training_history& other) = default;
STRATA_FUNCTION training_history::training_history(training_history&& other) noexcept = default;
STRATA_FUNCTION training_history& training_history::operator=(const training_history& other) = default;
STRATA_FUNCTION training_history& training_history::operator=(training_history&& other) noexcept = default;
STRATA_FUNCTION training_history::~training_history() = default;

STRATA_FUNCTION void training_history::add_time(const time_split& of_next_process) { times_.push_back(of_next_process); }

STRATA_FUNCTION std::ostream& operator<<(std::ostream& out, const training_history& h) {
  for (std::size_t i = 0; i < h.size(); ++i) out << "Epoch " << h.epochs_[i] + 1 << " - " << h.logs_[i] << '\n';
  return out;
}

STRATA_FUNCTION void training_history::add(int epoch, const logs& of_epoch) {
  epochs_.push_back(epoch);
  logs& kept = logs_.emplace_back();
  for (const auto& value : of_epoch) kept.set(value.first, value.second);
}

STRATA_FUNCTION std::vector<double> training_history::operator[](std::string_view name) const {
  std::vector<double> out;
  for (const logs& one : logs_)
    if (const auto value = one.find(name)) out.push_back(*value);
  if (!out.empty()) return out;
  logs all;
  for (const logs& one : logs_)
    for (const auto& known : one) all.set(known.first, known.second);
  throw_error(
      {"there is no '", name, "' in the history", all.empty() ? ": it is empty" : detail::text_of({"; it has ", all.names()})});
}

STRATA_FUNCTION bool training_history::contains(std::string_view name) const {
  for (const logs& one : logs_)
    if (one.contains(name)) return true;
  return false;
}

}  // namespace strata
