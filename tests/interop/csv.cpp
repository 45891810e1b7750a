// The other half of test_csv.py: prints the fields of a CSV file, or its columns of numbers.
#include <cstdio>
#include <strata/data/formats/csv.hpp>
#include <string>

using namespace strata;

int main(int argc, char** argv) {
  try {
    const std::string command = argc > 1 ? argv[1] : "", path = argc > 2 ? argv[2] : "", separator = argc > 3 ? argv[3] : ",";
    if (command == "fields") {
      data::csv_reader reader(path, separator[0]);
      while (reader.next()) {
        for (std::size_t i = 0; i < reader.size(); ++i) {
          std::printf(i > 0 ? " x" : "x");
          for (const char c : reader[i]) std::printf("%02x", static_cast<unsigned char>(c));
        }
        std::printf("\n");
      }
    }
    if (command == "numbers")
      for (const auto& [whole, real, text, maybe] : data::csv_rows<long long, double, std::string, std::optional<double>>(
               path, {.columns = {"whole", "real", "text", "maybe"}}))
        std::printf("%lld %a %zu %s\n", whole, real, text.size(), maybe ? std::to_string(*maybe).c_str() : "none");
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
