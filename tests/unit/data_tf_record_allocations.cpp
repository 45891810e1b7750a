// Nothing is allocated per record, neither by readers and writers nor by Examples and the pipeline around them.
// needs: protozero
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <strata/data/formats/example.hpp>
#include <strata/data/formats/example_builder.hpp>
#include <strata/data/formats/tf_record.hpp>
#include <strata/data/formats/tf_record_writer.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/shuffle.hpp>
#include <vector>

#include "count_allocations.hpp"
#ifndef STRATA_TEST_NEW_IS_TAKEN
using namespace strata;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {
/// The number of allocations when so many records are written.
long of_writing(const fs::path& file, int records, data::compression format) {
  const long before = allocations;
  data::tf_record_writer writer(file, {.compression = format});
  data::example_builder e;
  std::vector<float> x(300);
  std::vector<std::int64_t> y(50, -1);
  for (int i = 0; i < records; ++i) {
    e.clear();
    e.floats("x", x).integers("y", y).integer("label", i % 3).text("name", "a name that is not short");
    writer.write(e.serialized());
  }
  writer.close();
  return allocations - before;
}
long of_reading(const fs::path& file, data::compression format) {
  const long before = allocations;
  for (const auto& record : data::tf_record_reader(file, {.compression = format})) {
    const data::example e(record);
    REQUIRE(e.floats<300>("x")[0] == 0);
    REQUIRE(e.integers<50>("y")[49] == -1);
    REQUIRE(e.text("name").size() == 24);
  }
  return allocations - before;
}
/// The number of allocations in the third epoch.
long of_training(const fs::path& file, data::compression format) {
  auto train = data::tf_record({file, file}, {.compression = format}) | data::map([](std::span<const std::byte> record) {
                 const data::example e(record);
                 return std::pair(e.floats<300>("x"), e.integer("label"));
               }) |
               data::shuffle(50) | data::batch<8>;
  long before = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    before = allocations;
    for (const auto& b : train) REQUIRE(b.count == 8);
  }
  return allocations - before;
}
}  // namespace

TEST_CASE("ten times the records, as many allocations") {
  const fs::path few = fs::temp_directory_path() / ("strata-tf-record-allocations-" + std::to_string(getpid()));
  const fs::path many = few.string() + "-many";
  of_writing(many, 1, data::compression::none);  // the first file in a folder removes what dead processes left there
  fs::remove(many);
  for (const auto format : {data::compression::none, data::compression::gzip}) {
    const long of_few = of_writing(few, 400, format);  // more than one block
    CHECK(of_few > 0);                                 // the counter works
    CHECK(of_writing(many, 4'000, format) == of_few);
    CHECK(of_reading(many, format) == of_reading(few, format));
    CHECK(of_training(many, format) == of_training(few, format));
    CHECK(of_training(many, format) < 30);  // opening two files
  }
  fs::remove(few), fs::remove(many);
}
#endif
