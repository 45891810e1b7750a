// needs: grpc protozero
// Envelopes, as gRPC delivers them: in one slice or several.
#include <strata/net/envelope.hpp>
#include <strata/parameter_server/parameter_messages.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  const wire::sender from{"run", 2, 1, 77};
  const float weights[] = {1, 2, 3};
  const grpc::Slice elements(weights, sizeof weights);
  std::vector<std::string> all;
  for (const grpc::ByteBuffer& sealed : {wire::sealed(detail::pull_message{1, true, true, {1, 2}}),
                                         wire::sealed(from, detail::push_message{.rows = {3}}, {&elements, 1})}) {
    std::vector<grpc::Slice> slices;
    fuzz::check(sealed.Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& s : slices) bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
    for (const unsigned of_slice : {0u, 1u, 7u}) all.push_back(fuzz::with_choice(of_slice, bytes));
  }
  return all;
}

/// The first byte is the size of a slice.
void read(std::string_view input) {
  const fuzz::choice chosen(input);
  std::vector<grpc::Slice> slices;
  const std::size_t of_slice = chosen.number ? chosen.number : std::max<std::size_t>(chosen.rest.size(), 1);
  for (std::size_t at = 0; at < chosen.rest.size(); at += of_slice)
    slices.emplace_back(std::string(chosen.rest.substr(at, of_slice)));
  wire::envelope received(grpc::ByteBuffer(slices.data(), slices.size()));
  std::vector<char> elements(received.left());
  if (chosen.number & 1) {
    received.read(elements.data(), elements.size());
    fuzz::check(received.left() == 0 && chosen.rest.find(std::string_view(elements.data(), elements.size())) != chosen.rest.npos);
  }
  fuzz::look_at(received.from().run);
  fuzz::look_at(received.body<detail::push_message>().rows);
}

const fuzz::target envelope{"envelope", seeds, read};
}  // namespace
