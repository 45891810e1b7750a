#include <doctest/doctest.h>

#include <strata/io/sha256.hpp>
#include <string>
#include <vector>
using namespace strata;

namespace {
std::string sum(const std::string& message, std::size_t piece = 1000) {
  const std::vector<std::uint8_t> bytes(message.begin(), message.end());
  io::sha256 s;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    s.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
  return s.hex();
}
}  // namespace

TEST_CASE("SHA-256 of the vectors of FIPS 180-4") {
  CHECK(sum("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sum("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sum(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("pieces and lengths around a block do not matter") {
  for (const std::size_t length : {1u, 55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 128u}) {
    const std::string message(length, 'x');
    for (const std::size_t piece : {1u, 7u, 64u}) CHECK(sum(message, piece) == sum(message));
  }
  CHECK(sum(std::string(64, 'x')) != sum(std::string(65, 'x')));
}
