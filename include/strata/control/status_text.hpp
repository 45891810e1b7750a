// Texts in gRPC statuses: never longer than a client takes, and without control characters of other processes. Needs gRPC.
// needs: grpc
#pragma once
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace strata::detail {

/// gRPC sends the text of a status as metadata, of which a client takes 8 KB by default. It refuses a longer text, and with it
/// the status. So texts are cut at 6,000 bytes as gRPC encodes them: three for a byte that is `%` or not printable ASCII.
inline std::string fit_for_status(std::string text) {
  constexpr std::size_t most = 6000, cut_mark = 3;
  std::size_t encoded = 0, kept = 0;  // `kept`: bytes that leave room for the mark; whole characters of UTF-8
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (encoded <= most - cut_mark && (c & 0xC0) != 0x80) kept = i;
    encoded += c < 0x20 || c > 0x7E || c == '%' ? 3 : 1;
    if (encoded > most) return text.substr(0, kept) + "...";
  }
  return text;
}

inline grpc::Status status_of(grpc::StatusCode code, std::string why) { return {code, fit_for_status(std::move(why))}; }

}  // namespace strata::detail

namespace strata::control {

/// Text from another process, shortened and without control characters.
inline std::string printable(std::string text, std::size_t most) {
  text.resize(std::min(text.size(), most));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return text;
}

}  // namespace strata::control
