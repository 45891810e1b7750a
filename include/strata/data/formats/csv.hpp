// Tables in CSV files, as typed rows, as columns, or as samples. Needs zlib (-lz).
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/read_number.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/core/single_pass.hpp>
#include <strata/data/formats/csv_reader.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

/// How to read a table, and how to make samples of it.
struct csv_options {
  std::vector<std::string> columns = {};      // names, in the order of the types or features; none: all but label and targets
  std::string label = {};                     // of csv<features>: the column of the classes
  std::vector<std::string> targets = {};      // of csv<features, targets>: their columns
  std::vector<std::string> class_names = {};  // labels in the order of their class numbers; none: found in the file
  char separator = ',';
  bool header = true;                         // the first line has the names; otherwise they are "0", "1" ...
  std::vector<std::string> na_values = {""};  // missing values; numbers in any spelling
  std::optional<double> missing = {};         // the value to use instead; none: an error
  csv_limits limits = {};                     // more columns, longer lines or a stronger compression are errors
};

namespace detail {

/// The conversion of one or several columns to a C++ type.
template <class T>
struct csv_type {
  static constexpr bool valid = std::is_arithmetic_v<T> && !std::same_as<T, long double>;
  static constexpr std::size_t columns = 1;
};
template <>
struct csv_type<std::string> {
  static constexpr bool valid = true;
  static constexpr std::size_t columns = 1;
};
template <class T>
struct csv_type<std::optional<T>> : csv_type<T> {};
template <class T, std::size_t N>
struct csv_type<std::array<T, N>> {
  static constexpr bool valid = csv_type<T>::valid;
  static constexpr std::size_t columns = N * csv_type<T>::columns;
};

/// "1 column", "3 columns"
inline std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + ' ' + what + (n == 1 ? "" : "s");
}

inline std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

enum class csv_number { good, no_number, too_large };

/// Whether a decimal number, not 0, is 1 or more, without its sign.
inline bool is_at_least_one(std::string_view number) {
  const std::size_t end = std::min(number.find_first_of("eE"), number.size()), point = std::min(number.find('.'), end);
  const std::size_t first = number.find_first_of("123456789");
  // The power of ten of the first digit, without the exponent.
  const auto power = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) - (first < point ? 1 : 0);
  std::int64_t exponent = 0;
  const bool negative = end + 1 < number.size() && number[end + 1] == '-';
  for (std::size_t i = end; i < number.size(); ++i)
    if (number[i] >= '0' && number[i] <= '9' && exponent < (std::int64_t{1} << 50)) exponent = 10 * exponent + (number[i] - '0');
  return power + (negative ? -exponent : exponent) >= 0;
}

/// Reads the whole text as a number. A number below the smallest one becomes 0, as in other programs.
template <class T>
csv_number parse_csv_number(std::string_view text, T& to) {
  text = without_blanks(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char *begin = text.data(), *end = begin + text.size();
  if constexpr (std::same_as<T, bool>) {
    const bool yes = text == "1" || text == "true" || text == "True" || text == "TRUE";
    if (!yes && text != "0" && text != "false" && text != "False" && text != "FALSE") return csv_number::no_number;
    to = yes;
    return csv_number::good;
  } else {
    const auto [stop, code] = strata::detail::read_number(begin, end, to);
    if (stop != end || code == std::errc::invalid_argument) return csv_number::no_number;
    if (code == std::errc{}) return csv_number::good;
    if (!std::floating_point<T> || is_at_least_one(text)) return csv_number::too_large;
    to = static_cast<T>(text[0] == '-' ? -0.f : 0.f);
    return csv_number::good;
  }
}

template <class T>
constexpr const char* csv_type_name() {
  if constexpr (std::same_as<T, bool>) return "true or false";
  if constexpr (std::floating_point<T>) return "a number";
  return std::is_signed_v<T> ? "a whole number" : "a whole number from 0";
}

/// Whether T has the value v.
template <class T>
bool is_a(double v) {
  if constexpr (std::floating_point<T>)
    return true;
  else  // max + 1 is a power of two, and so a double, even if max is not
    return v >= static_cast<double>(std::numeric_limits<T>::min()) &&
           v < static_cast<double>(std::numeric_limits<T>::max()) + 1 && v == std::trunc(v);
}

/// Reads a table from its beginning to its end: the header, then one record at a time.
class csv_table {
 public:
  csv_table(const std::filesystem::path& path, const csv_options& o)
      : reader_(path, o.separator, o.limits), na_values_(o.na_values), missing_(o.missing) {
    for (const std::string& text : na_values_)
      if (double v = 0; parse_csv_number(text, v) == csv_number::good) na_numbers_.push_back(v);
    const bool header = o.header;
    has_first_ = reader_.next();
    if (!has_first_ && header) throw_error(path.string() + ": there is no header: the file is empty");
    for (std::size_t i = 0; has_first_ && i < reader_.size(); ++i)
      names_.push_back(header ? std::string(without_blanks(reader_[i])) : std::to_string(i));
    if (!header) return;
    has_first_ = false;
    std::vector<std::string_view> numbers;
    for (const std::string& name : names_)
      if (double v = 0; parse_csv_number(name, v) == csv_number::good) numbers.push_back(name);
    std::ranges::sort(numbers);
    if (const auto twice = std::ranges::adjacent_find(numbers); twice != numbers.end())
      throw_error({path.string(), ": two columns have the name ", strata::detail::quoted(*twice),
                   ": if the first line has values instead of names, set header to false"});
  }

  /// Reads the next record. False at the end.
  bool next() {
    if (!std::exchange(has_first_, false) && !reader_.next()) return false;
    if (reader_.size() != names_.size())
      reader_.fail("expected " + counted(names_.size(), "column") + ", got " + std::to_string(reader_.size()));
    return true;
  }

  const std::vector<std::string>& names() const { return names_; }
  /// The indices of some columns.
  std::vector<std::size_t> find(const std::vector<std::string>& wanted) const {
    // Sorted once, because all names may be searched for, and a file may have very many.
    std::vector<std::size_t> order(names_.size()), found;
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto name_of = [&](std::size_t column) -> const std::string& { return names_[column]; };
    std::ranges::sort(order, {}, name_of);
    for (const std::string& name : wanted) {
      // Not std::ranges::equal_range, which returns a type that clang 14 cannot compile.
      const auto same = std::ranges::lower_bound(order, name, {}, name_of),
                 end = std::ranges::upper_bound(order, name, {}, name_of);
      if (same == end)
        throw_error({reader_.path().string(), ": there is no column ", strata::detail::quoted(name), "; the columns are ",
                     strata::detail::first_names(names_)});
      if (end - same > 1) throw_error({reader_.path().string(), ": there are several columns ", strata::detail::quoted(name)});
      found.push_back(*same);
    }
    return found;
  }

  /// The indices of all columns except those with these names.
  std::vector<std::size_t> all_but(const std::vector<std::string>& others = {}) const {
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (std::ranges::find(others, names_[i]) == others.end()) columns.push_back(i);
    return columns;
  }
  /// "3: a, b, c"
  std::string counted_names(const std::vector<std::size_t>& columns) const {
    std::vector<std::string> names;
    for (const std::size_t column : columns) names.push_back(names_[column]);
    return strata::detail::text_of({names.size(), ": ", strata::detail::first_names(names)});
  }

  std::string_view text(std::size_t column) const { return reader_[column]; }
  /// Leading and trailing blanks are ignored, and so is the notation of a number, except for T = std::string.
  template <class T = double>
  bool is_missing(std::size_t column) const {
    const auto is_listed = [&](std::string_view text) { return std::ranges::find(na_values_, text) != na_values_.end(); };
    if (std::same_as<T, std::string> || is_listed(text(column))) return is_listed(text(column));
    double v = 0;
    return is_listed(without_blanks(text(column))) ||
           (!na_numbers_.empty() && parse_csv_number(text(column), v) == csv_number::good &&
            std::ranges::any_of(na_numbers_, [&](double na) { return na == v || (std::isnan(na) && std::isnan(v)); }));
  }
  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    reader_.fail("column " + std::to_string(column + 1) + " (" + strata::detail::shown(names_[column]) + "): " + what);
  }
  [[noreturn]] void fail(const std::string& what) const { reader_.fail(what); }
  const std::filesystem::path& path() const { return reader_.path(); }

  template <class T>
  void read(std::size_t column, T& to) const {
    if constexpr (std::same_as<T, std::string>) {
      to = reader_[column];
    } else if (is_missing(column)) {
      if (!missing_)
        fail(column, std::string("the value is missing, expected ") + csv_type_name<T>() + "; .missing sets what to use instead");
      if (!is_a<T>(*missing_))
        fail(column, std::string("the value is missing, and `missing` is not ") + csv_type_name<T>() + " of this size");
      to = static_cast<T>(*missing_);
    } else {
      const csv_number result = parse_csv_number(reader_[column], to);
      const std::string expected = std::string("expected ") + csv_type_name<T>();
      if (result == csv_number::too_large)
        fail(column, expected + " of " + std::to_string(8 * sizeof(T)) + " bits, got " + strata::detail::quoted(reader_[column]));
      if (result == csv_number::no_number) fail(column, expected + ", got " + strata::detail::quoted(reader_[column]));
    }
  }
  template <class T>
  void read(std::size_t column, std::optional<T>& to) const {
    if (is_missing<T>(column))
      to.reset();
    else
      read(column, to.emplace());
  }

 private:
  csv_reader reader_;
  std::vector<std::string> names_, na_values_;
  std::vector<double> na_numbers_;  // the numbers among na_values_
  std::optional<double> missing_;
  bool has_first_ = false;
};

/// A table whose columns have types.
template <class... T>
class csv_typed {
 public:
  csv_typed(const std::filesystem::path& path, const csv_options& o)
      : table_(path, o), which_(o.columns.empty() ? table_.all_but() : table_.find(o.columns)) {
    if (!o.label.empty() || !o.targets.empty() || !o.class_names.empty())
      throw_error(path.string() + ": label, targets and class_names are options of csv, which makes samples");
    // An empty file without a header has no columns to compare.
    if (which_.size() != columns && !(table_.names().empty() && o.columns.empty()))
      throw_error({path.string(), ": expected ", counted(columns, "column"), ", got ", table_.counted_names(which_)});
  }

  bool next() { return table_.next(); }
  /// Stores the record in variables of these types.
  void read(T&... to) const {
    std::size_t column = 0;
    (read_one(column, to), ...);
  }

 private:
  static constexpr std::size_t columns = (std::size_t{0} + ... + csv_type<T>::columns);

  template <class U>
  void read_one(std::size_t& column, U& to) const {
    table_.read(which_[column++], to);
  }
  template <class U, std::size_t N>
  void read_one(std::size_t& column, std::array<U, N>& to) const {
    for (U& each : to) read_one(column, each);
  }

  csv_table table_;
  std::vector<std::size_t> which_;
};

template <class... T>
struct csv_row {
  using type = std::tuple<T...>;
};
template <class T>
struct csv_row<T> {
  using type = T;
};
template <class X, class Y>
struct csv_row<X, Y> {
  using type = std::pair<X, Y>;
};
}  // namespace detail

/// The rows of a CSV file, one after the other: `for (const auto& [name, price] : csv_rows<std::string, float>("fruit.csv"))`.
/// A row of one type is a T, of two a std::pair, of more a std::tuple. Types are numbers, bool, std::string, std::optional of
/// these (empty for a missing value) and std::array (as many columns). Input range; each begin() reads the file from its
/// beginning. The file may be larger than the memory. As samples: `from_generator([] { return csv_rows<std::array<float, 4>,
/// int>("large.csv"); })`. Throws strata_error with file, line, column and text for a missing column, a wrong number of
/// them, a value that is missing or not of its type, and damaged quotes. https://www.rfc-editor.org/rfc/rfc4180
template <class... T>
class csv_rows : public detail::single_pass<csv_rows<T...>> {
  static_assert(sizeof...(T) > 0 && (detail::csv_type<T>::valid && ...),
                "columns of a CSV file are numbers, bool, std::string, or std::optional or std::array of these");
  friend detail::single_pass<csv_rows>;

 public:
  using row = typename detail::csv_row<T...>::type;

  explicit csv_rows(std::filesystem::path path, csv_options options = {})
      : path_(std::move(path)), options_(std::move(options)) {}

 private:
  struct state {
    std::unique_ptr<detail::csv_typed<T...>> table;
    row current{};
    bool done = false;
  };

  void start() {
    state_.table = std::make_unique<detail::csv_typed<T...>>(path_, options_);
    next();
  }
  const row& read() const { return state_.current; }
  void next() {
    state_.done = !state_.table->next();
    if (state_.done) return;
    if constexpr (sizeof...(T) == 1)
      state_.table->read(state_.current);
    else
      std::apply([&](T&... to) { state_.table->read(to...); }, state_.current);
  }
  bool done() const { return state_.done; }

  std::filesystem::path path_;
  csv_options options_;
  detail::own_state<state> state_;
};

/// The columns that read_csv returns, a std::tuple.
template <class... T>
struct csv_columns : std::tuple<std::vector<T>...> {
  /// Its name appears in the error of a loop over columns. For concepts, columns are not a range.
  struct no_row {
    const typename detail::csv_row<T...>::type* none = nullptr;

    const typename detail::csv_row<T...>::type& operator*() const {
      static_assert(sizeof...(T) == 0,
                    "read_csv returns columns: auto [a, b] = read_csv<int, float>(path); a loop goes over csv_rows");
      return *none;
    }
    no_row& operator++() { return *this; }
    friend bool operator==(const no_row&, const no_row&) = default;
  };
  /// Declared for the error of a loop.
  no_row begin() const { return {}; }
  /// Declared for the error of a loop.
  no_row end() const { return {}; }
};

/// The columns of a CSV file: `auto [name, price] = read_csv<std::string, float>("fruit.csv", {.columns = {"name", "price"}})`,
/// a std::vector of each type. Types and errors are those of csv_rows.
template <class... T>
csv_columns<T...> read_csv(const std::filesystem::path& path, const csv_options& options = {}) {
  static_assert(
      sizeof...(T) > 0 && (detail::csv_type<T>::valid && ...),
      "read_csv<float, std::string>(path): columns are numbers, bool, std::string, or std::optional or std::array of these");
  detail::csv_typed<T...> table(path, options);
  csv_columns<T...> columns;
  std::tuple<T...> row;
  while (table.next()) {
    std::apply([&](T&... to) { table.read(to...); }, row);
    std::apply([&](std::vector<T>&... column) { std::apply([&](T&... value) { (column.push_back(value), ...); }, row); },
               static_cast<std::tuple<std::vector<T>...>&>(columns));
  }
  return columns;
}

/// Samples and their class numbers; y is empty without a label. class_names has the text of each class, "0", "1" ... if labels
/// are class numbers and each of them occurs; with a gap it is empty. feature_names has the columns of x.
template <class T, shape S>
struct csv_samples {
  array<T, S> x;
  std::vector<std::int32_t> y;
  std::vector<std::string> class_names, feature_names;
};
/// Samples and their targets. feature_names has the columns of x.
template <class T, shape S, shape Target>
struct csv_targets {
  array<T, S> x;
  array<T, Target> y;
  std::vector<std::string> feature_names;
};

namespace detail {
/// The canonical text of a label that may be written in several ways: " 1.0", "+1" and "1e0" are "1", "True" is "true". Numbers
/// from 2^53 on, which doubles cannot distinguish, stay.
inline std::string csv_class_name(std::string_view text) {
  text = without_blanks(text);
  if (double v = 0; parse_csv_number(text, v) == csv_number::good && std::abs(v) < 0x1p53) {
    if (v == std::trunc(v)) return std::to_string(static_cast<long long>(v));
    std::array<char, 32> shortest;
    return {shortest.data(), std::to_chars(shortest.begin(), shortest.end(), v).ptr};
  }
  if (bool v = false; parse_csv_number(text, v) == csv_number::good) return v ? "true" : "false";
  return std::string(text);
}

/// Collects label texts; they become class numbers when all have been read.
class csv_classes {
 public:
  explicit csv_classes(std::vector<std::string> names) : names_(std::move(names)), given_(!names_.empty()) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!number_of_.emplace(csv_class_name(names_[i]), static_cast<std::int32_t>(i)).second)
        throw_error({"csv: class_names has ", strata::detail::quoted(names_[i]), " twice"});
  }

  void add(const csv_table& table, std::size_t column) {
    if (table.is_missing(column)) table.fail(column, "the label is missing");
    const std::string_view text = table.text(column);
    auto known = number_of_.find(text);
    if (known == number_of_.end()) known = number_of_.emplace(text, number_of(table, column)).first;
    labels_.push_back(known->second);
  }

  /// Labels and names of the classes. Throws strata_error that names the file if all labels are class numbers, except for
  /// one that is too large.
  std::pair<std::vector<std::int32_t>, std::vector<std::string>> finish(const std::filesystem::path& path) {
    if (given_) return {std::move(labels_), std::move(names_)};
    std::vector<double> values(names_.size());
    std::vector<std::int32_t> numbers(names_.size());
    bool whole = true, numeric = true, any_fits = false;
    const std::string* too_large = nullptr;
    std::int32_t largest = -1;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const csv_number fits = parse_csv_number(names_[i], numbers[i]);
      numeric = numeric && parse_csv_number(names_[i], values[i]) == csv_number::good;
      whole = whole && numeric && values[i] >= 0 && values[i] == std::trunc(values[i]);
      if (fits == csv_number::good) any_fits = true, largest = std::max(largest, numbers[i]);
      if (fits != csv_number::good) too_large = &names_[i];
    }
    if (whole && any_fits && too_large)
      throw_error({path.string(), ": the label ", strata::detail::quoted(*too_large),
                   " is too large for a class number, but others are class numbers: list all in class_names"});
    if (whole && !too_large) {
      for (std::int32_t& label : labels_) label = numbers[static_cast<std::size_t>(label)];
      std::vector<std::string> texts;
      const bool each_occurs = static_cast<std::size_t>(largest) + 1 == names_.size();
      for (std::int32_t i = 0; i <= largest && each_occurs; ++i) texts.push_back(std::to_string(i));
      return {std::move(labels_), std::move(texts)};
    }
    std::vector<std::size_t> order(names_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return numeric && values[a] != values[b] ? values[a] < values[b] : names_[a] < names_[b];
    });
    std::vector<std::string> sorted;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      numbers[order[rank]] = static_cast<std::int32_t>(rank);
      sorted.push_back(names_[order[rank]]);
    }
    for (std::int32_t& label : labels_) label = numbers[static_cast<std::size_t>(label)];
    return {std::move(labels_), std::move(sorted)};
  }

 private:
  /// The class number of a label whose text has not been read before.
  std::int32_t number_of(const csv_table& table, std::size_t column) {
    std::string name = csv_class_name(table.text(column));
    if (const auto known = number_of_.find(name); known != number_of_.end()) return known->second;
    const auto got = [&] { return ", got " + strata::detail::quoted(table.text(column)); };
    if (given_) table.fail(column, "expected one of the classes " + strata::detail::first_names(names_) + got());
    if (double v = 0; parse_csv_number(name, v) == csv_number::good && std::isnan(v))
      table.fail(column, "expected a label" + got() + ", which is not a number (names need class_names)");
    const auto number = static_cast<std::int32_t>(names_.size());
    names_.push_back(name);
    number_of_.emplace(std::move(name), number);
    return number;
  }

  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> number_of_;  // keyed by text; no hash table: texts may be chosen to collide
  std::vector<std::int32_t> labels_;
  bool given_;
};

/// Reads columns of a table as x, stores their names, and calls also() for each record.
template <class T, shape S, class Also>
array<T, S> read_csv_features(csv_table& table, const csv_options& o, const std::vector<std::string>& others,
                              std::vector<std::string>& names, Also&& also) {
  const std::vector<std::size_t> columns = o.columns.empty() ? table.all_but(others) : table.find(o.columns);
  if (columns.size() != std::size_t{S.size()})
    throw_error({table.path().string(), ": expected ", counted(std::size_t{S.size()}, "feature"), " for samples of shape ",
                 strata::detail::shape_text(S), ", got ", table.counted_names(columns)});
  for (const std::size_t column : columns) names.push_back(table.names()[column]);
  std::vector<T> values;
  while (table.next()) {
    for (const std::size_t column : columns) table.read(column, values.emplace_back());
    also();
  }
  return array<T, S>(std::move(values));
}

template <class T, shape S>
csv_samples<T, S> read_csv_samples(const std::filesystem::path& path, const csv_options& o) {
  csv_table table(path, o);
  if (!o.targets.empty()) throw_error(path.string() + ": csv<features> has no targets: csv<features, targets> has");
  csv_classes classes(o.class_names);
  std::vector<std::string> others;
  std::optional<std::size_t> label;
  if (!o.label.empty()) label = table.find(others = {o.label})[0];
  csv_samples<T, S> samples;
  samples.x = read_csv_features<T, S>(table, o, others, samples.feature_names, [&] {
    if (label) classes.add(table, *label);
  });
  std::tie(samples.y, samples.class_names) = classes.finish(path);
  return samples;
}

template <class T, shape S, shape Target>
csv_targets<T, S, Target> read_csv_targets(const std::filesystem::path& path, const csv_options& o) {
  csv_table table(path, o);
  if (!o.label.empty()) throw_error(path.string() + ": csv<features, targets> has no label: csv<features> has");
  if (o.targets.size() != std::size_t{Target.size()})
    throw_error(path.string() + ": expected " + counted(std::size_t{Target.size()}, "target") + ", got " +
                std::to_string(o.targets.size()));
  const std::vector<std::size_t> columns = table.find(o.targets);
  std::vector<T> targets;
  csv_targets<T, S, Target> samples;
  samples.x = read_csv_features<T, S>(table, o, o.targets, samples.feature_names, [&] {
    for (const std::size_t column : columns) table.read(column, targets.emplace_back());
  });
  samples.y = array<T, Target>(std::move(targets));
  return samples;
}
}  // namespace detail

/// Samples of a CSV file, with class numbers: `auto iris = csv<4>("iris.csv", {.label = "species"})`, then
/// `from_tensor_slices(iris.x, iris.y)`; for images `csv<shape{28, 28, 1}>`. If all labels are whole numbers from 0, they are the
/// class numbers. Other labels are sorted, as numbers or texts, and numbered in this order, unless class_names gives an order:
/// `csv<4>("test.csv", {.columns = iris.feature_names, .label = "species", .class_names = iris.class_names})` reads another file
/// with the same order of columns and the same class numbers. A label is the same however it is spelt: `1`, ` 1.0`, `+1` and
/// `1e0`, or `true` and `True`; class_names then has `1` and `true`. Throws strata_error with file, line, column and text
/// as csv_rows does, for a label that is not in class_names or is NaN, and for class_names of which two are the same.
template <shape S, class T = float>
csv_samples<T, S> csv(const std::filesystem::path& path, const csv_options& options = {}) {
  return detail::read_csv_samples<T, S>(path, options);
}
template <int Features, class T = float>
csv_samples<T, shape{Features}> csv(const std::filesystem::path& path, const csv_options& options = {}) {
  return detail::read_csv_samples<T, shape{Features}>(path, options);
}

/// Samples of a CSV file, with targets: `from_tensor_slices(csv<8, 1>("houses.csv", {.targets = {"price"}}))`.
/// Throws strata_error as above.
template <shape S, shape Target, class T = float>
csv_targets<T, S, Target> csv(const std::filesystem::path& path, const csv_options& options = {}) {
  return detail::read_csv_targets<T, S, Target>(path, options);
}
template <int Features, int Targets, class T = float>
csv_targets<T, shape{Features}, shape{Targets}> csv(const std::filesystem::path& path, const csv_options& options = {}) {
  return detail::read_csv_targets<T, shape{Features}, shape{Targets}>(path, options);
}

}  // namespace strata::data

template <class... T>
struct std::tuple_size<strata::data::csv_columns<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <std::size_t I, class... T>
struct std::tuple_element<I, strata::data::csv_columns<T...>> : std::tuple_element<I, std::tuple<std::vector<T>...>> {};
