// TFRecord files: raw, gzip and zlib, with and without checksums, and past damaged records.
#include <strata/data/formats/tf_record_reader.hpp>
#include <strata/data/formats/tf_record_writer.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
constexpr data::compression formats[] = {data::compression::none, data::compression::gzip, data::compression::zlib,
                                         data::compression::none};

std::string file_of(const std::vector<std::string>& records, data::compression format) {
  return fuzz::written([&](const auto& path) {
    data::tf_record_writer writer(path, {.compression = format});
    for (const std::string& record : records) writer.write(record);
    writer.close();
  });
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const unsigned format : {0u, 1u, 2u})
    for (const unsigned careless : {0u, 4u, 12u})
      all.push_back(fuzz::with_choice(format | careless, file_of({"a", "", std::string(300, 'b')}, formats[format])));
  return all;
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const fuzz::file file(chosen.rest);
  const data::tf_record_options options{.compression = formats[chosen.number & 3],
                                        .check_crc = (chosen.number & 4) == 0,
                                        .skip_damaged = (chosen.number & 8) != 0,
                                        .max_record_bytes = 1 << 16};
  std::vector<std::string> records;
  for (const data::tf_record_bytes& record : data::tf_record_reader(file.path(), options)) {
    fuzz::check(record.bytes.size() <= options.max_record_bytes);
    records.push_back(fuzz::bytes_of(record.bytes));
  }
  fuzz::accepted([&] {
    std::vector<std::string> again;
    const fuzz::file copy(file_of(records, data::compression::none));
    for (const data::tf_record_bytes& record : data::tf_record_reader(copy.path())) again.push_back(fuzz::bytes_of(record.bytes));
    fuzz::check(again == records);
  });
}

const fuzz::target tf_record{"tf_record", seeds, read};
}  // namespace
