// TFRecord files: files of TensorFlow are read, written files are read back, and damage is located.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <strata/base/random.hpp>
#include <strata/data/formats/tf_record.hpp>
#include <strata/data/formats/tf_record_writer.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/auto_shard.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/shuffle.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "tf_record_files.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {

struct folder {
  fs::path path = fs::temp_directory_path() / ("strata-tf-record-" + std::to_string(getpid()));
  folder() { fs::create_directories(path); }
  ~folder() { fs::remove_all(path); }

  fs::path put(std::string_view content, const char* name = "a.tfrecord") const {
    std::ofstream(path / name, std::ios::binary) << content;
    return path / name;
  }
  fs::path put(const std::vector<std::string>& records, data::tf_record_writer_options options = {},
               const char* name = "a.tfrecord") const {
    data::tf_record_writer writer(path / name, options);
    for (const std::string& record : records) writer.write(record);
    writer.close();
    return path / name;
  }
};
std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::vector<std::string> read(data::file_list files, data::tf_record_options options = {}) {
  std::vector<std::string> all;
  for (const data::tf_record_bytes& record : data::tf_record_reader(std::move(files), options)) all.push_back(text_of(record));
  return all;
}
/// The error message about a file, without the folder.
std::string complaint(const fs::path& file, data::tf_record_options options = {}) {
  const std::string text = error_of([&] { read(file, options); }), start = (file.parent_path() / "").string();
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

std::string noise(std::size_t size, std::uint64_t seed) {
  std::string text(size, '\0');
  const philox random{seed};
  for (std::size_t i = 0; i < size; ++i) text[i] = char(random(i, 0)[0]);
  return text;
}

constexpr auto plain = data::compression::none, gzip = data::compression::gzip, zlib = data::compression::zlib;
const std::vector<std::string> three{"one", "record two", "3"};  // at bytes 0, 19, 45; 62 in all

}  // namespace

TEST_CASE("files of tf.io.TFRecordWriter") {
  const folder f;
  for (const auto& [written, format] :
       {std::pair{written_by_tensorflow, plain}, {gzipped_by_tensorflow, gzip}, {compressed_by_tensorflow, zlib}}) {
    std::vector<std::uint64_t> offsets, sizes;
    const fs::path file = f.put(from_hex(written));
    for (const auto& record : data::tf_record_reader(file, {.compression = format})) {
      CHECK(record.number == offsets.size());
      CHECK(*record.file == file);
      offsets.push_back(record.offset);
      sizes.push_back(record.bytes.size());
    }
    CHECK(offsets == std::vector<std::uint64_t>{0, 95, 190, 206});
    CHECK(sizes == std::vector<std::uint64_t>{79, 79, 0, 10});
    // Written again, the bytes are the same, unless zlib compresses them.
    const auto again = read(f.put(read(file, {.compression = format}), {.compression = format}), {.compression = format});
    CHECK(again.back() == "no Example");
    if (format == plain) CHECK(content_of(f.path / "a.tfrecord") == from_hex(written));
  }
}

TEST_CASE("records of all sizes come back in every format") {
  const folder f;
  std::vector<std::string> records;
  for (std::size_t size : {0u, 1u, 7u, 8u, 4'096u, 262'128u, 262'144u, 262'145u, 700'000u, 0u, 3u})
    records.push_back(noise(size, size));
  for (std::size_t i = 0; i < 3'000; ++i) records.push_back(noise(i % 97, i));  // across the borders of blocks
  for (const auto format : {plain, gzip, zlib}) {
    const fs::path file = f.put(records, {.compression = format});
    CHECK((read(file, {.compression = format}) == records));
    CHECK((read(file, {.compression = format, .check_crc = false}) == records));
  }
  CHECK(fs::file_size(f.put(std::vector(100, std::string(1'000, 'a')), {.compression = gzip, .compression_level = 9})) < 2'000);
  CHECK(read(f.put(std::vector<std::string>{})).empty());
  CHECK(read(f.put(std::vector<std::string>{}, {.compression = gzip}), {.compression = gzip}).empty());
  CHECK(error_of([&] { f.put(three, {.compression = gzip, .compression_level = 10}); }) ==
        "tf_record_writer: compression_level is 10, it must be 0 ... 9, or -1");
}

TEST_CASE("gzip files may be put together, anything else must not follow") {
  const folder f;
  const std::string once = content_of(f.put(three, {.compression = gzip}));
  CHECK(read(f.put(once + once), {.compression = gzip}).size() == 6);
  CHECK(complaint(f.put(once + "tail"), {.compression = gzip})
            .starts_with("a.tfrecord: record 3 at byte 62 of the decompressed data: "));
  const std::string other = content_of(f.put(three, {.compression = zlib}));
  CHECK(complaint(f.put(other + other), {.compression = zlib}) ==
        "a.tfrecord: record 3 at byte 62 of the decompressed data: bytes follow the end of the compressed data");
}

TEST_CASE("several files are one stream, as often as it is begun") {
  const folder f;
  const fs::path a = f.put(three, {}, "a"), empty = f.put("", "empty"), b = f.put(std::vector<std::string>{"b"}, {}, "b");
  data::tf_record_reader reader({a, empty, b});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::string> seen;
    for (const auto& r : reader) seen.push_back(r.file->filename().string() + std::to_string(r.number) + text_of(r));
    CHECK(seen == std::vector<std::string>{"a0one", "a1record two", "a23", "b0b"});
    (void)reader.begin();  // a stream that is left early
  }
  CHECK(reader.files().size() == 3);
  CHECK(read(std::vector<std::string>{b.string(), a.string()}).front() == "b");
  CHECK(error_of([] { data::tf_record_reader(data::file_list{}); }) == "tf_record: there are no files to read");
  CHECK(error_of([&] { read({a, f.path / "none"}); }) ==
        "cannot read " + (f.path / "none").string() + ": No such file or directory");
  CHECK(error_of([&] { read(f.path, {.skip_damaged = true}); }) == "cannot read " + f.path.string() + ": Is a directory");

  const data::file_list all{"0", "1", "2", "3", "4"};
  CHECK(std::ranges::equal(all.shard(2, 1), std::vector<fs::path>{"1", "3"}));
  CHECK(std::ranges::equal(all.shard(1, 0), all));
  CHECK(error_of([&] { all.shard(2, 2); }) == "shard 2 of 2 does not exist: shards are numbered from 0");
  CHECK(error_of([&] { all.shard(9, 5); }) == "shard 5 of 9 is empty: there are only 5 files");
}

TEST_CASE("one flipped bit is found, and named") {
  const folder f;
  const std::string whole = content_of(f.put(three));
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    std::string bad = whole;
    bad[byte] = char(bad[byte] ^ 1 << byte % 8);
    const std::size_t number = byte < 19 ? 0 : byte < 45 ? 1 : 2, begin = number == 0 ? 0 : number == 1 ? 19 : 45;
    const std::string start = "a.tfrecord: record " + std::to_string(number) + " at byte " + std::to_string(begin) + ": ";
    const bool in_length = byte - begin < 12;
    CHECK(complaint(f.put(bad)) ==
          start + (in_length ? "the checksum of its length is wrong, so no later record can be found"
                             : "the checksum of its " + std::to_string(three[number].size()) + " bytes is wrong"));

    data::tf_record_reader reader(f.path / "a.tfrecord", {.skip_damaged = true});
    std::vector<std::string> left, expected = three;
    const auto bad_one = expected.begin() + std::ptrdiff_t(number);
    for (const auto& r : reader) left.push_back(text_of(r));
    expected.erase(bad_one, in_length ? expected.end() : bad_one + 1);
    CHECK(left == expected);
    CHECK(reader.damage().records() == !in_length);
    CHECK(reader.damage().files_cut_short() == in_length);
    CHECK(reader.damage().messages().size() == 1);
  }
}

TEST_CASE("a file that ends anywhere else than after a record is found") {
  const folder f;
  for (const auto format : {plain, gzip, zlib}) {
    const std::string whole = content_of(f.put(three, {.compression = format}));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const fs::path file = f.put(whole.substr(0, size));
      const std::string text = complaint(file, {.compression = format});
      if (format == plain && (size == 0 || size == 19 || size == 45)) {
        CHECK(text == "no error");  // nothing in the format says how many records there are
        continue;
      }
      CHECK(text.find("a.tfrecord: record ") == 0);
      CHECK(text.find(format == plain ? "the file ends" : ": the compressed data end too early") != std::string::npos);
      // Complete records are returned, in order.
      const auto left = read(file, {.compression = format, .skip_damaged = true});
      CHECK(std::equal(left.begin(), left.end(), three.begin()));
    }
  }
  CHECK(complaint(f.put(content_of(f.put(three)).substr(0, 44))) ==
        "a.tfrecord: record 1 at byte 19: its length is 10, but the file ends before that");
}

TEST_CASE("lengths that cannot be true ask for no memory") {
  const folder f;
  const std::string whole = content_of(f.put(three));
  for (const std::uint64_t length : {std::uint64_t{48}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 12}) {
    std::string header(12, '\0');
    for (std::size_t i = 0; i < 8; ++i) header[i] = char(length >> 8 * i);
    const std::uint32_t checksum = io::masked_crc32c(std::as_bytes(std::span(header).first(8)));
    for (std::size_t i = 0; i < 4; ++i) header[8 + i] = char(checksum >> 8 * i);
    const std::string words = "record 0 at byte 0: its length is " + std::to_string(length) + ", but the file ends before that";
    CHECK(complaint(f.put(header + whole.substr(12))) == "a.tfrecord: " + words);
    // zlib's format does not store the length of its data.
    const std::string stream = header + whole.substr(12);
    const fs::path zipped = f.path / "b.gz";
    gzFile out = gzopen(zipped.string().c_str(), "wb");
    REQUIRE(gzwrite(out, stream.data(), unsigned(stream.size())) == int(stream.size()));
    REQUIRE(gzclose(out) == Z_OK);
    CHECK(complaint(zipped, {.compression = gzip}).find("its length is " + std::to_string(length)) != std::string::npos);
  }
}

TEST_CASE("a record and the data of a compressed file are as long as the options allow") {
  const folder f;
  const std::vector<std::string> records{"short", std::string(1000, 'x')};
  for (const data::compression format : {plain, gzip, zlib}) {
    const fs::path file = f.put(records, {.compression = format});
    CHECK(read(file, {.compression = format, .max_record_bytes = 1000}) == records);
    CHECK(complaint(file, {.compression = format, .max_record_bytes = 999})
              .ends_with(": its length is 1000, but max_record_bytes is 999"));
    data::tf_record_options skip{.compression = format, .skip_damaged = true, .max_record_bytes = 999};
    CHECK(read(file, skip) == std::vector<std::string>{"short"});
  }
  CHECK(data::tf_record_options{}.max_record_bytes == 256 << 20);

  const std::vector<std::string> zeros(10, std::string(3'000'000, '\0'));
  for (const data::compression format : {gzip, zlib}) {
    const fs::path file = f.put(zeros, {.compression = format});
    const std::string words = complaint(file, {.compression = format});
    CHECK(words.ends_with(
        " of the decompressed data: the data are more than 200 times as long as the file, which max_compression_ratio forbids"));
    CHECK(words.find("its length") == words.npos);
    CHECK(read(file, {.compression = format, .max_compression_ratio = 1032}).size() == 10);
  }
}

TEST_CASE("the wrong format is recognised") {
  const folder f;
  CHECK(complaint(f.put(three, {.compression = gzip})).ends_with("{.compression = data::compression::gzip}"));
  CHECK(complaint(f.put(three, {.compression = zlib})).ends_with("{.compression = data::compression::zlib}"));
  CHECK(complaint(f.put(three), {.compression = gzip}) ==
        "a.tfrecord: record 0 at byte 0 of the decompressed data: incorrect header check");
}

TEST_CASE("damaged files of any kind end in an error or in whole records") {
  const folder f;
  std::vector<std::string> records;
  for (std::size_t i = 0; i < 8; ++i) records.push_back(noise(20 * i, i));
  const philox random{7};
  for (const auto format : {plain, gzip, zlib}) {
    const std::string whole = content_of(f.put(records, {.compression = format}));
    for (std::uint64_t k = 0; k < 1'500; ++k) {
      std::string bad = whole;
      const auto r = random(k, std::uint64_t(format));
      for (std::uint32_t n = 0; n <= r[0] % 4; ++n) {
        const auto change = random(k, 8 + n);
        const std::size_t at = change[0] % bad.size();
        if (change[1] % 4 == 0)
          bad.erase(at, 1 + change[2] % 20);
        else if (change[1] % 4 == 1)
          bad.insert(at, noise(change[2] % 20, k));
        else
          bad[at] = char(change[2]);
        if (bad.empty()) break;
      }
      const fs::path file = f.put(bad);
      for (const bool checked : {true, false}) {
        const std::string text = error_of([&] {
          for (const std::string& record : read(file, {.compression = format, .check_crc = checked}))
            if (checked) CHECK(std::ranges::find(records, record) != records.end());
        });
        CHECK((text == "no error" || text.find(file.string()) == 0));
        for (const std::string& record : read(file, {.compression = format, .check_crc = checked, .skip_damaged = true}))
          if (checked) CHECK(std::ranges::find(records, record) != records.end());
      }
    }
  }
}

TEST_CASE("one report for several readers") {
  const folder f;
  std::string bad = content_of(f.put(three));
  bad[13] = 'x';
  const fs::path a = f.put(bad, "a"), b = f.put(bad.substr(0, 50), "b");
  const auto damage = std::make_shared<data::damage_report>();
  const data::tf_record_options options{.skip_damaged = true, .damage = damage};
  CHECK(read(a, options) == std::vector<std::string>{"record two", "3"});
  CHECK(read({b, a}, options) == std::vector<std::string>{"record two", "record two", "3"});
  CHECK(damage->records() == 3);
  CHECK(damage->files_cut_short() == 1);
  CHECK(damage->messages()[2] ==
        b.string() + ": record 2 at byte 45: the file ends within its header; the rest of the file is skipped");
}

TEST_CASE("a file is complete or absent") {
  const folder f;
  const fs::path file = f.put(std::vector<std::string>{"old"});
  {
    data::tf_record_writer writer(file);
    writer.write(noise(1'000'000, 1));
    CHECK(read(file).front() == "old");
  }
  CHECK(read(file).front() == "old");
  CHECK(std::distance(fs::directory_iterator(f.path), {}) == 1);
  data::tf_record_writer writer(file);
  writer.write("new");
  writer.close();
  writer.close();
  CHECK(read(file).front() == "new");
  CHECK(error_of([&] { writer.write("late"); }) == "cannot write " + file.string() + ": it is closed");
}

TEST_CASE("records in a pipeline") {
  const folder f;
  std::vector<std::string> records;
  for (int i = 0; i < 100; ++i) records.push_back(std::to_string(i));
  const fs::path file = f.put(records);
  const auto number = [](std::span<const std::byte> record) { return float(std::stoi(text_of(record))); };
  auto source = data::tf_record({file, file});
  CHECK(source.source().files().size() == 2);
  const std::string order = data::detail::order_of(source);
  CHECK(order.starts_with("tf_record(2 files, checksum "));
  CHECK(data::detail::order_of(data::tf_record({file, f.put(records, {}, "other")})) != order);
  const auto of_worker = [&](std::size_t index) {
    return data::detail::order_of(source | data::shard_by<data::auto_shard::file>(2, index));
  };
  CHECK(of_worker(0) == of_worker(1));  // where files of another size may be
  f.put(std::vector<std::string>(9, "longer"));
  CHECK(data::detail::order_of(source) != order);
  f.put(records);
  auto train = source | data::map(number) | data::shuffle(20) | data::batch<8>;
  for (int epoch = 0; epoch < 2; ++epoch) {
    double sum = 0, count = 0;
    bool in_order = true;
    float before = -1;
    for (const auto& b : train)
      for (int i = 0; i < b.count; ++i) {
        in_order = in_order && b.x()[i] >= before;
        before = b.x()[i];
        sum += before;
        ++count;
      }
    CHECK(count == 200);
    CHECK(sum == 2 * 4950);
    CHECK(!in_order);
  }
  const auto refuse = [](std::span<const std::byte>) -> float { throw strata_error("no"); };
  auto bad = data::tf_record(file) | data::map(refuse) | data::batch<8>;
  CHECK(error_of([&] {
          for (const auto& b : bad) (void)b;
        }) == "map: record 0 of " + file.string() + ": no");
  auto damaged = data::tf_record(f.put(content_of(file) + "x", "b"), {.skip_damaged = true});
  int count = 0;
  for (const auto i : damaged) ++count, damaged.rows().release(i);
  CHECK(count == 100);
  CHECK(damaged.source().damage().files_cut_short() == 1);
  // Files are divided among workers, also below other stages.
  const fs::path first = f.put(std::vector<std::string>{"1", "2"}, {}, "1");
  const fs::path second = f.put(std::vector<std::string>{"3"}, {}, "2");
  const auto by_file = data::shard_by<data::auto_shard::file>(2, 1);
  auto shared = data::tf_record({first, second}) | data::map(number) | by_file | data::batch<1>;
  for (const auto& b : shared) CHECK((b.count == 1 && b.x()[0] == 3));
  CHECK(error_of([&] { (void)(data::tf_record(first) | by_file); }) ==
        "auto_shard::file: 1 files are too few for 2 workers; auto_shard::data shares the samples instead");
  // A reader is an ordinary range.
  auto generated = data::from_generator([file] { return data::tf_record_reader(file); }) | data::map(number) | data::batch<100>;
  for (const auto& b : generated) CHECK(b.x()[99] == 99);
  const auto records_of = [](const fs::path& path) { return data::tf_record_reader(path); };
  const auto numbers_of = [&](auto view) {
    std::vector<float> numbers;
    auto batches = std::move(view) | data::map(number) | data::batch<64>;
    for (const auto& b : batches) numbers.insert(numbers.end(), b.x(), b.x() + b.count);
    return numbers;
  };
  const auto files = data::from_range(std::vector{first, second, file});
  const auto in_turns = numbers_of(files | data::interleave(records_of, {.cycle_length = 2}));
  CHECK(std::vector(in_turns.begin(), in_turns.begin() + 4) == std::vector{1.0f, 3.0f, 2.0f, 0.0f});
  CHECK(in_turns.size() == 103);
  CHECK(numbers_of(files | data::interleave(records_of, {.cycle_length = 2}, data::parallel(2))) == in_turns);
}
