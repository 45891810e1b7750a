// needs: protozero
// Envelopes: the sender, the message and the elements of a request or an answer.
#include <strata/net/envelope.hpp>
#include <strata/parameter_server/parameter_messages.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::string bytes_of_message(const wire::sealed_message& m) {
  std::string bytes = m.head;
  for (const wire::shared_bytes& e : m.elements) bytes += fuzz::bytes_of(e.bytes);
  return bytes;
}

std::vector<std::string> seeds() {
  const wire::sender from{"run", 2, 1, 77};
  const float weights[] = {1, 2, 3};
  std::vector<std::string> all;
  for (const std::string& bytes :
       {bytes_of_message(wire::sealed(detail::pull_message{1, true, true, {1, 2}})),
        bytes_of_message(wire::sealed(from, detail::push_message{.rows = {3}}, {wire::shared_array({}, weights, 3)}))})
    for (const unsigned reads : {0u, 1u}) all.push_back(fuzz::with_choice(reads, bytes));
  return all;
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  wire::envelope received(chosen.rest);
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
