// safetensors: what is written is read back bit by bit, and anything else is refused.
#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <strata/base/random.hpp>
#include <strata/io/os.hpp>
#include <strata/io/safetensors.hpp>

#include "error_of.hpp"
#include "posix.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {

/// A directory that is deleted at the end of the test.
struct scratch {
  fs::path folder = fs::temp_directory_path() / ("strata-safetensors-" + std::to_string(io::os::process_id()));
  fs::path file = folder / "a.safetensors";
  scratch() { fs::create_directory(folder); }
  ~scratch() { fs::remove_all(folder); }

  void put(std::string_view bytes) const { std::ofstream(file, std::ios::binary) << bytes; }
  /// Writes a file of that header and `data` bytes.
  void put_header(std::string_view header, std::size_t data) const {
    const std::uint64_t length = header.size();
    put(std::string(reinterpret_cast<const char*>(&length), sizeof length).append(header).append(data, '\1'));
  }
  std::string content() const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The error message of opening the file.
  std::string complaint() const {
    try {
      const safetensors_file opened(file);
    } catch (const strata_error& e) {
      const std::string text = e.what();
      CHECK(text.find(file.string()) != std::string::npos);
      return text;
    }
    return "";
  }
  std::size_t files() const { return std::size_t(std::distance(fs::directory_iterator(folder), {})); }
};

bool says(const std::string& text, std::string_view words) {
  if (text.find(words) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("numbers come back bit by bit") {
  const scratch s;
  const std::vector<float> floats{-0.0f,
                                  std::numeric_limits<float>::denorm_min(),
                                  std::bit_cast<float>(0x7fc12345u),
                                  std::bit_cast<float>(0xff800001u),
                                  std::numeric_limits<float>::infinity(),
                                  0.1f};
  const std::vector<double> doubles{-0.0, std::numeric_limits<double>::denorm_min(), std::bit_cast<double>(0x7ff8000000012345ull),
                                    0.1};
  const std::vector<std::int64_t> whole{std::numeric_limits<std::int64_t>::min(), 7};
  const std::vector<std::uint8_t> bytes{0, 128, 255};
  const std::vector<std::int32_t> one{-3}, none;
  write_safetensors(
      s.file,
      std::vector{safetensor::of("bytes", {3}, bytes), safetensor::of("layer/kernel \"quoted\" \xc3\xa9", {2, 3}, floats),
                  safetensor::of("doubles", {4, 1}, doubles), safetensor::of("whole", {2}, whole), safetensor::of("one", {}, one),
                  safetensor::of("none", {5, 0}, none)},
      {{"format", "test"}, {"line", "a\nb"}});
  const safetensors_file in(s.file);
  const auto same = [](const auto& a, const auto& b) {
    return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
  };
  CHECK(same(in.read<float>("layer/kernel \"quoted\" \xc3\xa9"), floats));
  CHECK(same(in.read<double>("doubles"), doubles));
  CHECK(same(in.read<std::int64_t>("whole"), whole));
  CHECK(same(in.read<std::uint8_t>("bytes"), bytes));
  CHECK(same(in.bytes("bytes"), bytes));
  CHECK(in.read<std::int32_t>("one") == one);
  CHECK(in.read<std::int32_t>("none").empty());
  CHECK(in["one"].extents.empty());
  CHECK(in["none"].extents == tensor_extents{5, 0});
  CHECK(in["doubles"].type == dtype::F64);
  CHECK(in.metadata() == safetensors_metadata{{"format", "test"}, {"line", "a\nb"}});
  CHECK(in.entries().size() == 6);
  for (const safetensors_file::entry& e : in.entries()) CHECK(e.offset % size_of(e.type) == 0);
}

TEST_CASE("a file without tensors is a file") {
  const scratch s;
  write_safetensors(s.file, {});
  CHECK(safetensors_file(s.file).entries().empty());
}

TEST_CASE("reading says what does not fit") {
  const scratch s;
  const std::vector<float> v{1, 2};
  write_safetensors(s.file, std::vector{safetensor::of("v", {2}, v)});
  const safetensors_file in(s.file);
  const std::string file = s.file.string();
  CHECK(error_of([&] { (void)in.read<float>("w"); }) == file + ": there is no tensor 'w', but v");
  CHECK(error_of([&] { (void)in.read<double>("v"); }) == file + ": tensor 'v' holds F32, not F64");
  std::vector<float> three(3);
  CHECK(error_of([&] { (void)in.read(in["v"], std::span(three)); }) == file + ": tensor 'v' has 2 elements (2,), not 3");
  s.put(s.content().substr(0, s.content().size() - 4));  // truncates the open file
  CHECK(error_of([&] { (void)in.read<float>("v"); }) == file + ": it became shorter while it was read");
  CHECK(error_of([&] { (void)safetensors_file(s.folder / "no"); }) ==
        "cannot read " + (s.folder / "no").string() + ": No such file or directory");
  CHECK(error_of([&] { (void)safetensors_file{s.folder}; }) == "cannot read " + s.folder.string() + ": Is a directory");
#ifdef STRATA_TEST_POSIX
  REQUIRE(::mkfifo((s.folder / "pipe").c_str(), 0600) == 0);  // no process ever writes into it
  CHECK(error_of([&] { (void)safetensors_file{s.folder / "pipe"}; }) ==
        "cannot read " + (s.folder / "pipe").string() + ": not a regular file");
#endif
}

TEST_CASE("nothing is written that could not be read") {
  const scratch s;
  const std::vector<float> v{1, 2};
  const auto write = [&](std::vector<safetensor> tensors, const safetensors_metadata& metadata = {}) {
    try {
      write_safetensors(s.file, tensors, metadata);
    } catch (const strata_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto of = [&](std::string name, tensor_extents extents) {
    return safetensor::of(std::move(name), std::move(extents), v);
  };
  CHECK(says(write({of("v", {3})}), "tensor 'v' has 8 bytes, which are not (3,) of F32"));
  CHECK(says(write({of("v", {std::uint64_t(1) << 63, 4})}), "tensor 'v' has 8 bytes"));
  CHECK(says(write({of("v", {2}), of("v", {2})}), "tensor 'v' occurs twice"));
  CHECK(says(write({of("__metadata__", {2})}), "the format reserves"));
  CHECK(says(write({of("\xff", {2})}), "not UTF-8"));
  CHECK(says(write({}, {{"key", "\xff"}}), "not UTF-8"));
  CHECK(s.files() == 0);
}

TEST_CASE("a tensor of a dtype from tomorrow is left alone") {
  const scratch s;
  s.put_header(
      R"({"scale":{"dtype":"F4","shape":[3],"data_offsets":[0,2]},"\u001b[2J":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
      3);
  const safetensors_file in(s.file);
  CHECK(in.entries().size() == 2);
  CHECK(in.read<std::uint8_t>("\x1b[2J").size() == 1);
  CHECK(error_of([&] { (void)in.read<float>("scale"); }) == s.file.string() + ": tensor 'scale' holds an unknown dtype, not F32");
  CHECK(says(error_of([&] { (void)in["w"]; }), ": there is no tensor 'w', but \\x1b[2J, scale"));
  CHECK(says(error_of([&] { write_safetensors(s.file, std::vector{safetensor{"scale", dtype::unknown, {}, {}}}); }),
             ": tensor 'scale' has an unknown dtype"));
}

TEST_CASE("broken files are refused with their reason") {
  const scratch s;
  s.put("");
  CHECK(says(s.complaint(), "too short for a safetensors file: 0 bytes"));
  s.put(std::string(8, '\xff'));
  CHECK(says(s.complaint(), "truncated, or not a safetensors file"));
  s.put("\x89PNG\r\n\x1a\n and so on");
  CHECK(says(s.complaint(), "truncated, or not a safetensors file"));

  const auto complaint = [&](std::string_view header, std::size_t data) {
    s.put_header(header, data);
    return s.complaint();
  };
  CHECK(complaint(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   )", 8).empty());
  CHECK(complaint(R"({"__metadata__":{},"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2],"more":"ignored"}})", 2).empty());

  CHECK(says(complaint("", 0), "does not start with '{'"));
  CHECK(says(complaint("[]", 0), "does not start with '{'"));
  CHECK(says(complaint("{", 0), "the header is not JSON"));
  CHECK(says(complaint("{} {}", 0), "the header is not JSON"));
  CHECK(says(complaint("{\"a\xff\":1}", 0), "the header is not JSON"));
  CHECK(says(complaint("{" + std::string(100'000, '['), 0), "the header is not JSON"));
  CHECK(says(complaint(R"({"a":)" + std::string(100'000, '['), 0), "not nested like"));
  CHECK(says(complaint(R"({"a":{"b":{"c":{}}}})", 0), "not nested like"));
  CHECK(says(complaint(R"({"a":{"shape":[[1]]}})", 0), "not nested like"));
  CHECK(says(complaint(R"({"a":{"shape":[{}]}})", 0), "not nested like"));
  CHECK(says(complaint(R"({"a":1})", 0), "tensor 'a' is not described by an object"));
  CHECK(says(complaint(R"({"__metadata__":1})", 0), "not described by an object"));
  CHECK(says(complaint(R"({"__metadata__":{"a":1}})", 0), "the metadata 'a' is not text"));
  CHECK(says(complaint(R"({"__metadata__":{"a":"x","a":"y"}})", 0), "has 'a' twice"));

  const auto tensor = [&](std::string_view facts, std::size_t data) {
    return complaint("{\"t\":{" + std::string(facts) + "}}", data);
  };
  CHECK(says(tensor("", 0), "tensor 't': its 'shape' is missing, or has the wrong type"));
  CHECK(says(tensor(R"("shape":[2],"data_offsets":[0,8])", 8), "tensor 't': its 'dtype' is missing"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[2])", 8), "tensor 't': its 'data_offsets' is missing"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", 8),
             "'shape' has -2, which is not a whole number from 0"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])", 8), "'shape' has 2.0"));
  CHECK(says(tensor(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])", 8), "'shape' has \"2\""));
  CHECK(says(tensor(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8])", 8), "'shape' has"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,16])", 8), "are not within the 8 bytes of data"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])", 8), "are not within"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,16])", 8), "are not within"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615])", 8), "are not within"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])", 8), "(3,) of F32 are not the 8 bytes it has"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8])", 8), "are not the 8 bytes it has"));
  CHECK(says(tensor(R"("dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8])", 8), "has 'shape' twice"));
  CHECK(
      says(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 12), "the data are 12 bytes, of which the tensors use 8"));

  const auto two = [&](std::string_view first, std::string_view second, std::size_t data) {
    const std::string begin = R"({"dtype":"F32","shape":[2],"data_offsets":)";
    return complaint("{\"a\":" + begin + std::string(first) + "},\"b\":" + begin + std::string(second) + "}}", data);
  };
  CHECK(two("[8,16]", "[0,8]", 16).empty());
  CHECK(says(two("[0,8]", "[4,12]", 12), "tensor 'b' begins at byte 4 of the data, but overlaps another one, which ends at 8"));
  CHECK(says(two("[0,8]", "[0,8]", 8), "overlaps another one"));
  CHECK(says(two("[0,8]", "[12,20]", 20), "tensor 'b' begins at byte 12 of the data, but there is a gap before it, from byte 8"));
  CHECK(
      says(complaint(
               R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
           "the header has 'a' twice"));
}

TEST_CASE("a damaged file is read as what it claims to be, or refused") {
  const scratch s;
  const std::vector<float> v(60, 1.5f);
  write_safetensors(s.file,
                    std::vector{safetensor::of("dense/kernel", {6, 4}, std::span<const float>(v).first(24)),
                                safetensor::of("dense/bias", {4}, std::span<const float>(v).first(4)),
                                safetensor::of("conv2d/kernel", {2, 2, 4, 2}, std::span<const float>(v).first(32))},
                    {{"format", "test"}});
  const std::string whole = s.content();
  const std::size_t header_end = whole.find_last_of('}') + 1;
  constexpr std::string_view tokens = "{}[]\",:0123456789-.eF\\u \xff";
  int refused = 0, read = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (std::uint64_t k = 0; k <= i % 3 && !bytes.empty(); ++k) {
      const auto r = philox{20}(i, k);
      const std::size_t at = r[0] % (r[1] % 8 ? header_end : bytes.size());
      if (at >= bytes.size()) continue;
      switch (r[2] % 6) {
        case 0:
          bytes[at] = char(r[3]);
          break;
        case 1:
          bytes[at] = tokens[r[3] % tokens.size()];
          break;
        case 2:
          bytes.erase(at, 1 + r[3] % 8);
          break;
        case 3:
          bytes.insert(at, bytes.substr(r[3] % bytes.size(), 16));
          break;
        case 4:
          bytes[at] = char(bytes[at] ^ (1 << r[3] % 8));
          break;
        default:
          bytes.resize(at);
      }
    }
    s.put(bytes);
    try {
      const safetensors_file in(s.file);
      for (const auto& e : in.entries()) {
        CHECK(e.offset + e.bytes <= bytes.size());
        CHECK(in.bytes(e.name).size() == e.bytes);
      }
      ++read;
    } catch (const strata_error& e) {
      CHECK(std::string_view(e.what()).starts_with(s.file.string()));
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 50);
}
