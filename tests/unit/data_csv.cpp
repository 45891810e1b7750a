#include <doctest/doctest.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <ranges>
#include <strata/base/random.hpp>
#include <strata/data/formats/csv.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "error_of.hpp"
#include "repetitions.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using table = std::vector<std::vector<std::string>>;

table records(const scratch_folder& f, const std::string& content, char separator = ',') {
  data::csv_reader reader(f.write("r.csv", content), separator);
  table all;
  while (reader.next()) {
    all.emplace_back();
    for (std::size_t i = 0; i < reader.size(); ++i) all.back().emplace_back(reader[i]);
  }
  CHECK(!reader.next());
  return all;
}
std::string record_error(const scratch_folder& f, const std::string& content) {
  return f.without_folder(error_of([&] { (void)records(f, content); }));
}
template <class... T>
std::string complaint(const scratch_folder& f, const std::string& content, const data::csv_options& options = {}) {
  const auto path = f.write("bad.csv", content);
  return f.without_folder(error_of([&] { (void)data::read_csv<T...>(path, options); }));
}
template <class T, shape S>
std::vector<T> values_of(const data::array<T, S>& a) {
  return {a.values().begin(), a.values().end()};
}
const std::string iris =
    "sepal_length,sepal_width,petal_length,petal_width,species\n"
    "5.1,3.5,1.4,0.2,setosa\n"
    "6.3,3.3,6.0,2.5,virginica\n"
    "7.0,3.2,4.7,1.4,versicolor\n"
    "4.9,3.0,1.4,0.2,setosa\n";
}  // namespace

// A concept that checks whether columns are a range is false without an error: only a loop is an error.
static_assert(!std::ranges::range<const data::csv_columns<float, int>>);

TEST_CASE("records as RFC 4180 has them") {
  const scratch_folder f("csv");
  CHECK(records(f, "a,b\nc,d\n") == table{{"a", "b"}, {"c", "d"}});
  CHECK(records(f, "a,b\r\nc,d") == table{{"a", "b"}, {"c", "d"}});
  CHECK(records(f, "\"a\",\"b\"\r\n\"c\",\"d\"") == table{{"a", "b"}, {"c", "d"}});
  CHECK(records(f, "\"a,b\",\"c\nd\",\"e\r\nf\"\n") == table{{"a,b", "c\nd", "e\r\nf"}});
  CHECK(records(f, "\"a\"\"b\",\"\"\"\",\"\"\"\"\"\"\n") == table{{"a\"b", "\"", "\"\""}});
  CHECK(records(f, ",\n,,\n\"\"\n") == table{{"", ""}, {"", "", ""}, {""}});
  CHECK(records(f, "\n\na\n\r\n\nb\n\n") == table{{"a"}, {"b"}});
  CHECK(records(f, "a,") == table{{"a", ""}});
  CHECK(records(f, "") == table{});
  CHECK(records(f, "\n") == table{});
  CHECK(records(f,
                "\xEF\xBB\xBF"
                "a,b\n") == table{{"a", "b"}});
}

TEST_CASE("other separators, and quotes where they mean nothing") {
  const scratch_folder f("csv");
  CHECK(records(f, "a;b,c;\"d;e\"\n", ';') == table{{"a", "b,c", "d;e"}});
  CHECK(records(f, "a\tb c\t\n", '\t') == table{{"a", "b c", ""}});
  CHECK(records(f, "a b  c\n", ' ') == table{{"a", "b", "", "c"}});
  CHECK(records(f, "a\"b,5\" x 7\"\n") == table{{"a\"b", "5\" x 7\""}});
  CHECK(records(f, std::string("a\0b,c\n", 6)) == table{{std::string("a\0b", 3), "c"}});
  for (const char separator : {'"', '\n', '\r'})
    CHECK(f.without_folder(error_of([&] { (void)data::csv_reader(f.write("r.csv", iris), separator); })) ==
          "r.csv: the separator of a CSV file can be neither a quote nor the end of a line");
}

TEST_CASE("damaged quotes are found in their line") {
  const scratch_folder f("csv");
  CHECK(record_error(f, "a,b\n1,\"2\n3,4\n") == "r.csv: line 2: column 2: the quote is never closed");
  CHECK(record_error(f, "a,\"b\nb\"\n\n1,2\n\"x\ny\",\"2\"3\n") ==
        "r.csv: line 6: column 2: after the closing quote comes '3', expected a separator or the end of the line");
  CHECK(record_error(f, "\"") == "r.csv: line 1: column 1: the quote is never closed");
  CHECK(record_error(f, "\"a\"\"") == "r.csv: line 1: column 1: the quote is never closed");
  CHECK(record_error(f, "a\n\"" + std::string(70'000'000, 'x')) ==
        "r.csv: line 2: a record of more than 67108864 bytes, which max_record_bytes forbids: a quote that is never closed?");
}

TEST_CASE("what is written with quotes is read again, over many buffers") {
  const scratch_folder f("csv");
  const std::string letters = "ab,\"\n\r; ";
  table written;
  std::string content;
  std::vector<std::size_t> lines;
  for (std::uint32_t i = 0, line = 1; content.size() < 5'000'000; ++i) {
    const auto r = philox{3}(i);
    written.emplace_back();
    lines.push_back(line);
    for (std::uint32_t column = 0; column < 3; ++column) {
      std::string text;
      const std::uint32_t size = i % 1000 == 7 ? 700'000 : r[0] % 9;
      for (std::uint32_t k = 0; k < size; ++k) text += letters[philox{i}(k, column)[0] % letters.size()];
      content += column > 0 ? "," : "";
      if (text.find_first_of(",\"\n\r") != text.npos || r[1] % 2) {
        content += '"';
        for (const char c : text) content += c == '"' ? std::string("\"\"") : std::string(1, c);
        content += '"';
      } else {
        content += text;
      }
      line += std::uint32_t(std::count(text.begin(), text.end(), '\n'));
      written.back().push_back(std::move(text));
    }
    content += r[2] % 2 ? "\n" : "\r\n";
    ++line;
  }
  CHECK(records(f, content) == written);
  data::csv_reader reader(f / "r.csv");
  bool same = true;
  for (const std::size_t line : lines) same = reader.next() && reader.line() == line && same;
  CHECK(same);

  gzFile zipped = gzopen((f / "z.csv.gz").string().c_str(), "wb");
  gzwrite(zipped, content.data(), unsigned(content.size()));
  gzclose(zipped);
  data::csv_reader unzipped(f / "z.csv.gz");
  std::size_t n = 0;
  for (; unzipped.next(); ++n) same = unzipped[1] == written[n][1] && same;
  CHECK(n == written.size());
  CHECK(same);
}

TEST_CASE("gzipped files may be put together and end with zeros, anything else must not follow") {
  const scratch_folder f("csv");
  const std::string once = [&] {
    gzFile out = gzopen((f / "a.gz").string().c_str(), "wb");
    gzputs(out, "1,2\n");
    gzclose(out);
    const bytes all = f.read("a.gz");
    return std::string(all.begin(), all.end());
  }();
  const std::string zeros(512, '\0');
  std::string damaged = once;
  damaged[1] ^= 1;
  CHECK(records(f, once + once + zeros) == table{{"1", "2"}, {"1", "2"}});
  CHECK(record_error(f, once + damaged) == "r.csv: byte 4 of the decompressed data: incorrect header check");
  for (const std::string& tail : {std::string("tail"), zeros + once})
    CHECK(record_error(f, once + tail).starts_with("r.csv: byte 4 of the decompressed data: "));
  CHECK(record_error(f, once.substr(0, once.size() - 1)) ==
        "r.csv: byte 4 of the decompressed data: the compressed data end too early");
}

TEST_CASE("numbers, and what is none") {
  const auto number = []<class T>(T, const std::string& text) -> std::optional<T> {
    T value{};
    return data::detail::parse_csv_number(text, value) == data::detail::csv_number::good ? std::optional(value) : std::nullopt;
  };
  CHECK(number(0.f, "0.1") == 0.1f);
  CHECK(number(0.f, " +1.5e3\t") == 1500.f);
  CHECK(number(0.f, "-.5") == -.5f);
  CHECK(number(0.f, "5.") == 5.f);
  CHECK(number(0.f, "1e-50") == 0.f);
  CHECK(number(0.f, "-1e-46") == 0.f);
  CHECK(number(0.f, "1e-41") == 1e-41f);
  CHECK(number(0.0, "1e-400") == 0.0);
  CHECK(number(0.0, "-1e-9999") == 0.0);
  CHECK(std::signbit(*number(0.0, "-1e-9999")));
  const std::string zeros(6000, '0');
  CHECK(number(0.0, "0." + zeros + "1") == 0.0);
  CHECK(number(0.f, "1" + zeros + "e-6050") == 0.f);
  CHECK(!number(0.f, "1" + zeros + "e-5900"));
  CHECK(!number(0.0, "0." + zeros + "1e7000"));
  CHECK(number(0.0, "4.9e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(number(0.0, "inf") == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(*number(0.f, "NaN")));
  for (const std::string text :
       {"", " ", "+", "-", "+-1", "--1", "++1", "1,5", "1.5x", "0x10", "1 2", "e5", "1e", ".", "1e+", "abc"}) {
    CAPTURE(text);
    CHECK(!number(0.f, text));
    CHECK(!number(0, text));
  }
  for (const std::string text : {"1e39", "-1e39", "1e400", "1e99999"}) CHECK(!number(0.f, text));
  CHECK(number(0, "-2147483648") == std::numeric_limits<int>::min());
  CHECK(!number(0, "2147483648"));
  CHECK(!number(0, "3.0"));
  CHECK(!number(0u, "-1"));
  CHECK(number(std::uint8_t{}, "255") == 255);
  CHECK(!number(std::uint8_t{}, "256"));
  for (const std::string text : {"1", "true", "True", "TRUE", " true "}) CHECK(number(false, text) == true);
  for (const std::string text : {"0", "false", "False", "FALSE"}) CHECK(number(true, text) == false);
  for (const std::string text : {"2", "yes", "", "t"}) CHECK(!number(false, text));
}

TEST_CASE("columns by type, by name and in another order") {
  const scratch_folder f("csv");
  const auto path =
      f.write("fruit.csv", std::string("name,price,\"weight, kg\",ripe\napple,0.5,0.2,True\n\"pear, green\",0.75,,False\n"));
  const auto [name, price, weight, ripe] = data::read_csv<std::string, float, std::optional<double>, bool>(path);
  CHECK(name == std::vector<std::string>{"apple", "pear, green"});
  CHECK(price == std::vector<float>{0.5f, 0.75f});
  CHECK(weight == std::vector<std::optional<double>>{0.2, std::nullopt});
  CHECK(ripe == std::vector<bool>{true, false});
  const auto [heavy, first] = data::read_csv<float, std::string>(path, {.columns = {"weight, kg", "name"}, .missing = -1});
  CHECK(heavy == std::vector<float>{0.2f, -1.f});
  CHECK(first == name);
  const auto [both] = data::read_csv<std::array<double, 2>>(path, {.columns = {"price", "weight, kg"}, .missing = 0});
  CHECK(both == std::vector<std::array<double, 2>>{{0.5, 0.2}, {0.75, 0}});

  const auto plain = f.write("plain.csv", std::string("1;2\n3;?\n"));
  const auto [a, b] = data::read_csv<int, std::optional<int>>(plain, {.separator = ';', .header = false, .na_values = {"?"}});
  CHECK(a == std::vector<int>{1, 3});
  CHECK(b == std::vector<std::optional<int>>{2, std::nullopt});
  for (const data::csv_options& o : {data::csv_options{.label = "1"}, {.targets = {"1"}}})
    CHECK(error_of([&] {
            (void)data::read_csv<int, int>(plain, o);
          }).ends_with(": label, targets and class_names are options of csv, which makes samples"));
  const auto [last] = data::read_csv<std::string>(plain, {.columns = {"1"}, .separator = ';', .header = false});
  CHECK(last == std::vector<std::string>{"2", "?"});
  CHECK(std::get<0>(data::read_csv<int>(f.write("e.csv", std::string("a\n")))).empty());
  CHECK(std::get<0>(data::read_csv<int, int>(f.write("e.csv", std::string()), {.header = false})).empty());
}

TEST_CASE("what is wrong with a table: file, line, column, text") {
  const scratch_folder f("csv");
  CHECK(complaint<float, int>(f, "a,b\n1,2\n3,x y\n") == "bad.csv: line 3: column 2 (b): expected a whole number, got 'x y'");
  CHECK(complaint<float, int>(f, "a,b\n1.5.5,2\n") == "bad.csv: line 2: column 1 (a): expected a number, got '1.5.5'");
  CHECK(complaint<float, unsigned>(f, "a,b\n1,-2\n") ==
        "bad.csv: line 2: column 2 (b): expected a whole number from 0, got '-2'");
  CHECK(complaint<float, std::int8_t>(f, "a,b\n1,200\n") ==
        "bad.csv: line 2: column 2 (b): expected a whole number of 8 bits, got '200'");
  CHECK(complaint<float, bool>(f, "a,b\n1e50,0\n") == "bad.csv: line 2: column 1 (a): expected a number of 32 bits, got '1e50'");
  CHECK(complaint<float, bool>(f, "a,b\n1,maybe\n") == "bad.csv: line 2: column 2 (b): expected true or false, got 'maybe'");
  CHECK(complaint<float, int>(f, "a,b\n\"1\n\",2\n") == "bad.csv: line 2: column 1 (a): expected a number, got '1\\n'");
  CHECK(complaint<float, int>(f, "a,b\n,2\n") ==
        "bad.csv: line 2: column 1 (a): the value is missing, expected a number; .missing sets what to use instead");
  CHECK(complaint<float, int>(f, "a,b\n" + std::string(101, 'z') + ",2\n") ==
        "bad.csv: line 2: column 1 (a): expected a number, got '" + std::string(100, 'z') + "...'");
  for (const double missing : {-1.0, 0.5, 256.0, 1e300, std::nan("")})
    CHECK(complaint<float, std::uint8_t>(f, "a,b\n,0\n1,\n", {.missing = missing}) ==
          "bad.csv: line 3: column 2 (b): the value is missing, and `missing` is not a whole number from 0 of this size");
  CHECK(complaint<std::int64_t>(f, "a,b\n,0\n", {.columns = {"a"}, .missing = 0x1p63}).find("`missing` is not a whole number") !=
        std::string::npos);
  CHECK(complaint<std::int64_t>(f, "a,b\n,0\n", {.columns = {"a"}, .missing = -0x1p63}) == "no error");
  CHECK(complaint<float, int>(f, "a,b\n1,2\n1,2,3\n") == "bad.csv: line 3: expected 2 columns, got 3");
  CHECK(complaint<float, int>(f, "a,b\n1,2\n\n1\n") == "bad.csv: line 4: expected 2 columns, got 1");
  CHECK(complaint<float>(f, "a,b\n1,2\n") == "bad.csv: expected 1 column, got 2: a, b");
  CHECK(complaint<float>(f, "a,b\n1,2\n", {.columns = {"c"}}) == "bad.csv: there is no column 'c'; the columns are a, b");
  CHECK(complaint<float>(f, "a,a\n1,2\n", {.columns = {"a"}}) == "bad.csv: there are several columns 'a'");
  CHECK(complaint<float, int>(f, "a,b\n1,2\n", {.columns = {"b"}}) == "bad.csv: expected 2 columns, got 1: b");
  CHECK(complaint<float>(f, "") == "bad.csv: there is no header: the file is empty");
  CHECK(f.without_folder(error_of([&] { (void)data::read_csv<float>(f / "none.csv"); })) ==
        "cannot read none.csv: No such file or directory");
  CHECK(error_of([&] { (void)data::read_csv<float>(f.path); }) == "cannot read " + f.path.string() + ": Is a directory");
}

TEST_CASE("what other programs write: blanks for nothing, names that come twice, carriage returns") {
  const scratch_folder f("csv");
  const auto blanks = f.write("b.csv", "a,b\n ,\tNA \n1,2\n");
  const auto [a, b] = data::read_csv<std::optional<float>, std::optional<std::string>>(blanks, {.na_values = {"", "NA"}});
  CHECK(a == std::vector<std::optional<float>>{std::nullopt, 1.f});
  CHECK(b == std::vector<std::optional<std::string>>{"\tNA ", "2"});  // blanks are part of a text

  const data::csv_options codes{.na_values = {"-999", "nan"}};
  const auto [c, d] = data::read_csv<std::optional<float>, std::optional<std::string>>(
      f.write("n.csv", "c,d\n-999.0,-999.0\n-9.99e2,-999\nNaN,NaN\n-998,nan\n"), codes);
  CHECK(c == std::vector<std::optional<float>>{std::nullopt, std::nullopt, std::nullopt, -998.f});
  CHECK(d == std::vector<std::optional<std::string>>{"-999.0", std::nullopt, "NaN", std::nullopt});
  CHECK(f.without_folder(error_of([&] {
    (void)data::csv<1>(f.write("n.csv", "x,y\n1,0\n1,-999.0\n"), {.label = "y", .na_values = {"-999"}});
  })) == "n.csv: line 3: column 2 (y): the label is missing");

  const auto twice = f.write("t.csv", "a,a,y,\n1,2,0,5\n");
  CHECK(data::read_csv<int, int, int, int>(twice) == std::tuple(std::vector{1}, std::vector{2}, std::vector{0}, std::vector{5}));
  CHECK(values_of(data::csv<3>(twice, {.label = "y"}).x) == std::vector<float>{1, 2, 5});
  CHECK(f.without_folder(error_of([&] { (void)data::csv<1>(twice, {.columns = {"a"}}); })) ==
        "t.csv: there are several columns 'a'");
  CHECK(complaint<int, int, int>(f, "5,0,0\n1,2,3\n") ==
        "bad.csv: two columns have the name '0': if the first line has values instead of names, set header to false");
  CHECK(complaint<int, int, int>(f, ",0,1\n1,2,3\n") == "no error");
  CHECK(complaint<int>(f, "a\r1\r\r\n2\rx\r") == "bad.csv: line 5: column 1 (a): expected a whole number, got 'x'");
}

TEST_CASE("what is no table in UTF-8 is named, and names are shown as what they are") {
  const scratch_folder f("csv");
  const std::string utf16 = "bad.csv: the file is UTF-16: save it as UTF-8",
                    archive = "bad.csv: the file is a zip archive or a spreadsheet: save the table as CSV, in UTF-8";
  using std::string_literals::operator""s;
  CHECK(complaint<int>(f,
                       "\xFF\xFE"
                       "a\0\n\0"s) == utf16);
  CHECK(complaint<int>(f, "\xFE\xFF\0a\0\n"s) == utf16);
  CHECK(complaint<int>(f, "a\0,\0b\0\n\0"s) == utf16);
  CHECK(complaint<int>(f, "\0a\0,\0b\0\n"s) == utf16);
  CHECK(complaint<int>(f, "PK\3\4,b\n1,2\n") == archive);
  CHECK(complaint<int>(f, "\xD0\xCF\x11\xE0\n") == archive);
  CHECK(complaint<int>(f, "\x1b[31m,\ufeffb\n1,2\n", {.columns = {"b"}}) ==
        "bad.csv: there is no column 'b'; the columns are \\x1b[31m, \\ufeffb");
  CHECK(complaint<int>(f,
                       "\xEF\xBB\xBF\xEF\xBB\xBF"
                       "a\nx\0\n"s) == "bad.csv: line 2: column 1 (\\ufeffa): expected a whole number, got 'x\\x00'");
}

TEST_CASE("rows one after the other, again and again") {
  const scratch_folder f("csv");
  const auto path = f.write("iris.csv", iris);
  data::csv_rows<std::array<float, 4>, std::string> rows(path);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::string species;
    float sum = 0;
    for (const auto& [x, name] : rows) species += name + ' ', sum += x[3];
    CHECK(species == "setosa virginica versicolor setosa ");
    CHECK(sum == doctest::Approx(4.3));
  }
  auto copy = rows;
  CHECK((*copy.begin()).second == "setosa");
  std::vector<double> widths;
  for (const double width : data::csv_rows<double>(path, {.columns = {"sepal_width"}})) widths.push_back(width);
  CHECK(widths == std::vector<double>{3.5, 3.3, 3.2, 3.0});
  for (const auto& [a, b, name] :
       data::csv_rows<float, float, std::string>(path, {.columns = {"sepal_width", "petal_width", "species"}}))
    CHECK(a > b);

  auto batches = data::from_generator([path] {
                   return data::csv_rows<std::array<float, 4>, int>(
                       path, {.columns = {"sepal_length", "sepal_width", "petal_length", "petal_width", "species"}});
                 }) |
                 data::batch<2>;
  CHECK(error_of([&] {
          for (const auto& b : batches) CHECK(b.count == 0);
        }).find("iris.csv: line 2: column 5 (species): expected a whole number, got 'setosa'") != std::string::npos);
  f.write("iris.csv", std::string("a,b,c,d,y\n1,2,3,4,0\n5,6,7,8,2\n9,10,11,12,1\n"));
  std::vector<float> x;
  std::vector<int> y;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const auto& b :
         data::from_generator([path] { return data::csv_rows<std::array<float, 4>, int>(path); }) | data::batch<2>) {
      x.insert(x.end(), b.x(), b.x() + 4 * b.count);
      y.insert(y.end(), b.labels(), b.labels() + b.count);
    }
  CHECK(y == std::vector<int>{0, 2, 1, 0, 2, 1});
  CHECK(x[23] == 12);
}

TEST_CASE("samples with classes") {
  const scratch_folder f("csv");
  const auto path = f.write("iris.csv", iris);
  const auto all = data::csv<4>(path, {.label = "species"});
  CHECK(all.class_names == std::vector<std::string>{"setosa", "versicolor", "virginica"});
  CHECK(all.y == std::vector<std::int32_t>{0, 2, 1, 0});
  CHECK(all.x.size() == 4);
  CHECK(all.x[2](2) == 4.7f);
  const auto two = data::csv<2, double>(
      path,
      {.columns = {"petal_width", "sepal_length"}, .label = "species", .class_names = {"versicolor", "virginica", "setosa"}});
  CHECK(values_of(two.x) == std::vector<double>{0.2, 5.1, 2.5, 6.3, 1.4, 7.0, 0.2, 4.9});
  CHECK(two.y == std::vector<std::int32_t>{2, 1, 0, 2});
  const auto image = data::csv<shape{2, 2, 1}>(path, {.columns = {"sepal_length", "sepal_width", "petal_length", "petal_width"}});
  CHECK(image.x[1](1, 0, 0) == 6.0f);
  CHECK(image.y.empty());

  const auto labels = [&](const std::string& column) {
    std::string content = "x,y\n";
    for (const char c : column) content += c == ' ' ? "\n" : std::string(content.back() == '\n' ? "0," : "") + c;
    return data::csv<1>(f.write("l.csv", content + '\n'), {.label = "y"});
  };
  CHECK(labels("3 0 10").y == std::vector<std::int32_t>{3, 0, 10});  // class numbers
  CHECK(labels("2 0 1.0 0").class_names == std::vector<std::string>{"0", "1", "2"});
  CHECK(labels("3 0 2").class_names.empty());
  CHECK(labels("1 2 3").class_names.empty());
  CHECK(labels("3 0 2").feature_names == std::vector<std::string>{"x"});
  CHECK(labels("1 -1 1").y == std::vector<std::int32_t>{1, 0, 1});
  CHECK(labels("10.5 2.50").class_names == std::vector<std::string>{"2.5", "10.5"});
  CHECK(labels("10 2 x").class_names == std::vector<std::string>{"10", "2", "x"});
  CHECK(labels("10.0 +2 2e0 0").y == std::vector<std::int32_t>{10, 2, 2, 0});
  CHECK(error_of([&] { (void)labels("0 3000000000 1"); })
            .ends_with("l.csv: the label '3000000000' is too large for a class number, but others are class numbers: list all in "
                       "class_names"));
  CHECK(labels("1 -1.0 +1 -1 1.0").y == std::vector<std::int32_t>{1, 0, 1, 0, 1});
  CHECK(labels("1 -1.0 +1 -1 1.0").class_names == std::vector<std::string>{"-1", "1"});
  CHECK(labels("true False TRUE false").y == std::vector<std::int32_t>{1, 0, 1, 0});
  CHECK(labels("1 x 1.0 -0 0").y == std::vector<std::int32_t>{1, 2, 1, 0, 0});
  CHECK(labels("9007199254740993 9007199254740992").class_names.size() == 2);  // one double
  const auto answers = [&](const std::vector<std::string>& class_names) {
    return data::csv<1>(f.write("l.csv", "x,y\n0, yes\n0,yes\t\n0,\"no \"\n"), {.label = "y", .class_names = class_names});
  };
  CHECK(answers({}).y == std::vector<std::int32_t>{1, 1, 0});
  CHECK(answers({}).class_names == std::vector<std::string>{"no", "yes"});
  CHECK(answers({"yes ", " no"}).y == std::vector<std::int32_t>{0, 0, 1});
  CHECK(answers({"yes ", " no"}).class_names == std::vector<std::string>{"yes ", " no"});
  CHECK(data::csv<1>(f.write("l.csv", "x,y\n0,0.0\n0,1.0\n"), {.label = "y", .class_names = {"1", "0"}}).y ==
        std::vector<std::int32_t>{1, 0});
  const auto numbers = labels("2 0 +1.0");
  const auto again = [&](const std::string& rows) {
    return data::csv<1>(f.write("l.csv", "y,z,x\n" + rows),
                        {.columns = numbers.feature_names, .label = "y", .class_names = numbers.class_names});
  };
  CHECK(again("1,7,5\n2,7,6\n").y == std::vector<std::int32_t>{1, 2});
  CHECK(values_of(again("1,7,5\n2,7,6\n").x) == std::vector<float>{5, 6});
  CHECK(error_of([&] { (void)again("3,7,5\n"); }).ends_with("expected one of the classes 0, 1, 2, got '3'"));
  CHECK(error_of([&] { (void)answers({"1", "yes", "1.0"}); }) == "csv: class_names has '1.0' twice");
  int seen = 0;
  for (const auto& b : data::from_tensor_slices(all.x, all.y) | data::batch<4>) seen += b.labels()[1];
  CHECK(seen == 2);

  const auto complaint = [&](const data::csv_options& o) {
    return f.without_folder(error_of([&] { (void)data::csv<4>(path, o); }));
  };
  CHECK(complaint({}) ==
        "iris.csv: expected 4 features for samples of shape (4,), got 5: sepal_length, sepal_width, petal_length, petal_width, "
        "species");
  CHECK(complaint({.label = "kind"}).find("iris.csv: there is no column 'kind'; the columns are sepal_length, ") == 0);
  CHECK(complaint({.label = "species", .class_names = {"setosa", "virginica"}}) ==
        "iris.csv: line 4: column 5 (species): expected one of the classes setosa, virginica, got 'versicolor'");
  CHECK(complaint({.targets = {"species"}}) == "iris.csv: csv<features> has no targets: csv<features, targets> has");
  CHECK(complaint({.columns = {"sepal_length", "sepal_width", "petal_length", "species"}}) ==
        "iris.csv: line 2: column 5 (species): expected a number, got 'setosa'");
  CHECK(f.without_folder(error_of([&] { (void)data::csv<1>(f.write("m.csv", std::string("x,y\n1,\n")), {.label = "y"}); })) ==
        "m.csv: line 2: column 2 (y): the label is missing");
  CHECK(error_of([&] { (void)labels("0 1 nan"); })
            .ends_with("l.csv: line 4: column 2 (y): expected a label, got 'nan', which is not a "
                       "number (names need class_names)"));
  CHECK(error_of([&] {
          (void)data::csv<1>(f.write("m.csv", "x,y\n1, \n"), {.label = "y"});
        }).ends_with("m.csv: line 2: column 2 (y): the label is missing"));
}

TEST_CASE("samples with numbers to be learnt") {
  const scratch_folder f("csv");
  const auto path = f.write("houses.csv", std::string("rooms,price,area\n3,100.5,70\n5,200,\n"));
  const auto houses = data::csv<2, 1>(path, {.targets = {"price"}, .missing = -1});
  CHECK(values_of(houses.x) == std::vector<float>{3, 70, 5, -1});
  CHECK(values_of(houses.y) == std::vector<float>{100.5, 200});
  CHECK(houses.feature_names == std::vector<std::string>{"rooms", "area"});
  const auto other = data::csv<shape{1}, shape{2}, double>(path, {.targets = {"area", "price"}, .missing = 0});
  CHECK(values_of(other.y) == std::vector<double>{70, 100.5, 0, 200});
  int seen = 0;
  for (const auto& b : data::from_tensor_slices(houses) | data::batch<2>) seen += b.targets()[1] == 200;
  CHECK(seen == 1);
  const auto complaint = [&](const data::csv_options& o) {
    return f.without_folder(error_of([&] { (void)data::csv<2, 1>(path, o); }));
  };
  CHECK(complaint({.label = "price"}) == "houses.csv: csv<features, targets> has no label: csv<features> has");
  CHECK(complaint({}) == "houses.csv: expected 1 target, got 0");
  CHECK(complaint({.targets = {"price"}}) ==
        "houses.csv: line 3: column 3 (area): the value is missing, expected a number; .missing sets what to use instead");
}

TEST_CASE("columns, the length of a record and expansion are limited") {
  const scratch_folder f("csv");
  const auto of_columns = [](std::size_t n) { return std::string(n - 1, ',') + '\n'; };
  const std::string many = "r.csv: line 1: more than 65536 columns, which max_columns forbids";
  CHECK(records(f, of_columns(65'536))[0].size() == 65'536);
  CHECK(record_error(f, of_columns(65'537)) == many);
  CHECK(record_error(f, std::string(30'000'000, ',')) == many);  // before the rest of the line is looked at
  const auto path = f.write("r.csv", "a,b,c\n1,2,3\n");
  CHECK(f.without_folder(error_of([&] { (void)data::csv<3>(path, {.limits = {.max_columns = 2}}); })) ==
        "r.csv: line 1: more than 2 columns, which max_columns forbids");
  const std::string long_line =
      "line 1: a record of more than 5 bytes, which max_record_bytes forbids: a quote that is never closed?";
  CHECK(f.without_folder(error_of([&] { (void)data::read_csv<int, int, int>(path, {.limits = {.max_record_bytes = 5}}); })) ==
        "r.csv: " + long_line);
  CHECK(data::csv<3>(path, {.limits = {.max_columns = 3, .max_record_bytes = 6}}).x.size() == 1);

  const auto zipped = f / "zeros.csv.gz";
  gzFile out = gzopen(zipped.string().c_str(), "wb");
  std::string zeros = "text\n";
  for (int i = 0; i < 20; ++i) zeros += std::string(1'000'000, '0') + '\n';
  REQUIRE(gzwrite(out, zeros.data(), unsigned(zeros.size())) == int(zeros.size()));
  REQUIRE(gzclose(out) == Z_OK);
  const std::string words = f.without_folder(error_of([&] { (void)data::read_csv<std::string>(zipped); }));
  CHECK(words.starts_with("zeros.csv.gz: byte "));
  CHECK(words.ends_with(" of the decompressed data: the data are more than 200 times as long as the file of " +
                        std::to_string(std::filesystem::file_size(zipped)) + " bytes, which max_compression_ratio forbids"));
  CHECK(std::get<0>(data::read_csv<std::string>(zipped, {.limits = {.max_compression_ratio = 1032}})).size() == 20);
}

TEST_CASE("many columns take no longer than their number") {
  const scratch_folder f("csv");
  std::string names;  // comparing each with each would take longer than a test may
  const int count = repetitions(750'000, 150'000);
  for (int i = 0; i < count; ++i) names += (i ? ",a" : "a") + std::to_string(i);
  const auto path = f.write("wide.csv", names + '\n');
  CHECK(f.without_folder(error_of([&] {
           (void)data::read_csv<float>(path, {.limits = {.max_columns = std::size_t(count)}});
         })).starts_with("wide.csv: expected 1 column, got " + std::to_string(count)));
}

TEST_CASE("a damaged file is read or refused, never more") {
  const scratch_folder f("csv");
  int read = 0, refused = 0;
  const std::string whole = iris + "\"5.1\",\"3.5\"\r\n\"a \"\"b\"\"\n\",,x\n" + iris;
  const auto rounds = std::uint32_t(repetitions(5'000, 1'000));
  for (std::uint32_t i = 0; i < rounds; ++i) {
    std::string content = i % 2 ? whole : iris;
    for (std::uint32_t k = 0; k < 1 + i % 3; ++k) {
      const auto r = philox{4}(i, k);
      content[r[0] % content.size()] = r[1] % 2 ? "\",\n\r .e-"[r[2] % 8] : char(r[2]);
      if (r[3] % 4 == 0) content.resize(content.size() - r[3] % content.size());
    }
    const auto path = f.write("m.csv", content);
    try {
      const auto all = data::csv<4>(path, {.label = "species", .missing = 0});
      read += all.x.size() == all.y.size();
    } catch (const strata_error& e) {
      CHECK(std::string(e.what()).find(path.string()) != std::string::npos);
      ++refused;
    }
  }
  CHECK(read > int(rounds) / 20);
  CHECK(refused > int(rounds) / 20);
}
