// The other half of test_tf_record.py: writes TFRecord files for TensorFlow, and prints what it reads from one.
// needs: protozero
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <strata/data/formats/example.hpp>
#include <strata/data/formats/example_builder.hpp>
#include <strata/data/formats/tf_record_reader.hpp>
#include <strata/data/formats/tf_record_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace strata;

namespace {

void print_hex(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) std::printf("%02x", std::to_integer<unsigned>(b));
}

/// Prints a record per line: its bytes, or "key kind values..." of all features if it is an Example.
void print(const char* path, data::compression format, bool examples) {
  for (const data::tf_record_bytes& record : data::tf_record_reader(path, {.compression = format})) {
    if (!examples) {
      print_hex(record);
    } else {
      const data::example e(record);
      for (const std::string_view key : e.keys()) {
        std::printf("%.*s %d", int(key.size()), key.data(), int(e.kind(key)));
        if (e.kind(key) == data::feature_kind::bytes)
          for (const auto value : e.bytes_list(key)) std::printf(" x"), print_hex(value);
        if (e.kind(key) == data::feature_kind::floats)
          for (const float value : e.floats(key)) std::printf(" %a", double(value));
        if (e.kind(key) == data::feature_kind::integers)
          for (const std::int64_t value : e.integers(key)) std::printf(" %lld", static_cast<long long>(value));
        std::printf(" ; ");
      }
    }
    std::printf("\n");
  }
}

void write(const char* path, data::compression format) {
  data::tf_record_writer writer(path, {.compression = format});
  data::example_builder e;
  for (int i = 0; i < 3; ++i) {
    e.clear();
    std::vector<float> floats(std::size_t(100'000 * i));
    for (std::size_t k = 0; k < floats.size(); ++k) floats[k] = 0.1f * float(k);
    using limits = std::numeric_limits<std::int64_t>;
    const std::vector<std::int64_t> integers{i, -1, limits::min(), limits::max()};
    const std::string name("na\0me", 5);
    e.floats("floats", floats).integers("integers", integers).text("name", name).bytes_list("none", {}).integer("", 5);
    writer.write(e.serialized());
  }
  writer.close();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string command = argc == 4 ? argv[1] : "", name = argc == 4 ? argv[3] : "";
    auto format = data::compression::none;
    if (name == "GZIP") format = data::compression::gzip;
    if (name == "ZLIB") format = data::compression::zlib;
    if (command == "write")
      write(argv[2], format);
    else if (command == "records" || command == "examples")
      print(argv[2], format, command == "examples");
    else
      throw strata_error("use: tf_record write|records|examples FILE FORMAT");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
