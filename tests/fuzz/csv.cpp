// CSV files, raw and gzipped: rows of several types, columns by name, samples with labels or targets.
#include <strata/data/formats/csv.hpp>

#include "fuzz.hpp"
#include "zipped.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  const std::string rows = "\xEF\xBB\xBFname,price\r\n\"a \"\"b\"\"\nc\",1.5\n\nd,-2e3\n",
                    numbers = "x,y,kind\n1,2,cat\n3,,dog\n";
  std::vector<std::string> all;
  for (const unsigned zipped : {0u, 1u})
    for (const unsigned way : {0u, 2u, 4u, 6u, 8u, 10u}) all.push_back(fuzz::with_choice(way | zipped, way < 4 ? rows : numbers));
  return all;
}

std::vector<std::string> larger(int count) {
  std::string classes = "x,y,kind\n", lines = "name,price\n\"";
  for (int i = 0; i < count; ++i) {
    classes += "1,2,class" + std::to_string(i) + '\n';
    lines += i % 50 == 49 ? "\"\"\n\",1\n\"" : "\"\"\n";
  }
  return {fuzz::with_choice(8, classes), fuzz::with_choice(0, lines + "\",1\n")};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const fuzz::file file(chosen.number & 1 ? fuzz::gzipped(chosen.rest) : std::string(chosen.rest));
  const data::csv_limits limits{.max_columns = 64, .max_record_bytes = 1 << 12};
  switch (chosen.number >> 1 & 7) {
    case 0:
      for (const auto& row : data::csv_rows<std::string, float>(file.path(), {.limits = limits})) {
        fuzz::look_at(row.first);
        fuzz::check(row.first.size() <= limits.max_record_bytes);
      }
      break;
    case 1: {
      const auto [names] = data::read_csv<std::string>(file.path(), {.columns = {"name"}, .limits = limits});
      for (const std::string& name : names) fuzz::look_at(name);
      break;
    }
    case 2:
      for (const auto& row : data::csv_rows<double, std::optional<std::int8_t>, std::string>(
               file.path(), {.separator = ',', .header = false, .na_values = {"", "NA"}, .limits = limits}))
        fuzz::look_at(std::get<2>(row));
      break;
    case 3:
      for (const std::array<std::int16_t, 3>& row : data::csv_rows<std::array<std::int16_t, 3>>(
               file.path(), {.separator = ';', .header = false, .missing = 0.5, .limits = limits}))
        fuzz::look_at(row);
      break;
    case 4: {
      const auto samples = data::csv<2>(file.path(), {.label = "kind", .missing = 0, .limits = limits});
      fuzz::look_at(samples.x.values());
      const std::size_t names = samples.class_names.size();
      for (const std::int32_t label : samples.y) fuzz::check(label >= 0 && (names == 0 || std::size_t(label) < names));
      break;
    }
    default: {
      const auto samples =
          data::csv<1, 2>(file.path(), {.columns = {"x"}, .targets = {"y", "x"}, .missing = 0, .limits = limits});
      fuzz::check(samples.x.size() == samples.y.size());
      fuzz::look_at(samples.y.values());
    }
  }
}

const fuzz::target csv{"csv", seeds, read, larger};
}  // namespace
