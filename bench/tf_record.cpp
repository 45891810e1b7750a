// TFRecord files from the page cache: checked records, and batches of parsed Examples, in GB of records per second.
// needs: protozero
#include "machine.hpp"
#include "support/options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <strata/data/formats/example.hpp>
#include <strata/data/formats/example_builder.hpp>
#include <strata/data/formats/tf_record.hpp>
#include <strata/data/formats/tf_record_writer.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace strata;
using namespace strata::bench;
namespace fs = std::filesystem;

namespace {

struct settings {
  std::string file, format, what;
  double seconds = 2;
};

data::compression format_of(const std::string& name) {
  if (name == "GZIP") return data::compression::gzip;
  return name == "ZLIB" ? data::compression::zlib : data::compression::none;
}

/// Writes Examples of 784 floats and a label.
void write(const fs::path& path, const std::string& format, int records) {
  data::tf_record_writer writer(path, {.compression = format_of(format)});
  data::example_builder e;
  std::vector<float> x(784);
  for (int i = 0; i < records; ++i) {
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = float((std::size_t(i) * 31 + k * k) % 256) / 255;
    e.clear();
    e.floats("image", x).integer("label", i % 10);
    writer.write(e.serialized());
  }
  writer.close();
}

std::size_t read_records(const settings& s) {
  std::size_t bytes = 0;
  for (const data::tf_record_bytes& record : data::tf_record_reader(s.file, {.compression = format_of(s.format)}))
    bytes += record.bytes.size();
  return bytes;
}
std::size_t make_batches(const settings& s) {
  auto batches = data::tf_record(s.file, {.compression = format_of(s.format)}) | data::map([](std::span<const std::byte> record) {
                   const data::example e(record);
                   return std::pair(e.floats<784>("image"), e.integer("label"));
                 }) |
                 data::batch<64>;
  std::size_t samples = 0;
  for (const auto& batch : batches) samples += std::size_t(batch.count);
  return samples;
}

/// Measures the fastest pass within the given time.
template <class F>
void measure(const char* what, const settings& s, std::size_t bytes, F pass) {
  if (!s.what.empty() && s.what != what) return;
  double best = 1e9;
  std::size_t sum = 0;
  const double start = now();
  do {
    const double begin = now();
    sum += pass(s);
    best = std::min(best, now() - begin);
  } while (now() - start < s.seconds);
  std::printf("{\"what\": \"%s\", \"compression\": \"%s\", \"gb_per_second\": %.3f, \"sum\": %zu}\n", what, s.format.c_str(),
              double(bytes) / best / 1e9, sum);
  std::fflush(stdout);
}

void measure(const settings& s) {
  const std::size_t bytes = read_records(s);  // also loads the file into the page cache
  measure("read", s, bytes, read_records);
  measure("examples", s, bytes, make_batches);
}

}  // namespace

int main(int argc, char** argv) try {
  settings s;
  strata::bench::options("Reads TFRecord files.")
      .add("--file", s.file, "file to read; none: writes one of 60,000 digits")
      .add("--compression", s.format, "compression of the file", {"GZIP", "ZLIB"})
      .add("--what", s.what, "the only measurement", {"read", "examples"})
      .add("--seconds", s.seconds, "for each measurement")
      .smoke("--seconds 0")
      .parse(argc, argv);
  if (!s.file.empty()) {
    measure(s);
    return 0;
  }
  const fs::path file = fs::temp_directory_path() / ("strata-bench-" + std::to_string(getpid()) + ".tfrecord");
  s.file = file.string();
  for (const char* format : {"", "GZIP"}) {
    s.format = format;
    write(file, s.format, smoke_test ? 64 : 60'000);
    measure(s);
    fs::remove(file);
  }
} catch (const strata_error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
