// needs: protozero
// Requests of workers to a parameter server: each is answered exactly once, with a refusal or with weights.
#include <strata/control/control_messages.hpp>
#include <strata/net/message.hpp>
#include <strata/parameter_server/parameter_messages.hpp>

#include <cstring>

#include "fuzz.hpp"
#include "small_server.hpp"
using namespace strata;
using namespace strata::core;

namespace {
enum method : unsigned { join, leave, assign, pull, push };

/// A request as part of an input: method and worker, the sizes of its message and its elements, then both.
std::string request(method m, unsigned worker, const std::string& message, std::size_t elements) {
  return std::string{char(unsigned(m) | worker << 4), char(message.size()), char(elements)} + message +
         std::string(elements * sizeof(float), '\1');
}

std::vector<std::string> seeds() {
  constexpr std::size_t all = fuzz::small_server::shard_size, rest = all - 24;
  const auto begin = request(join, 0, "", 0) + request(join, 1, "", 0) +
                     request(assign, 0, wire::encode(detail::assign_message{0, true}), all) +
                     request(assign, 0, wire::encode(detail::assign_message{1, true}), all);
  const auto pushes = [&](unsigned worker, int leaves, std::vector<double> sums) {
    return request(push, worker, wire::encode(detail::push_message{0, 0, 0.1, 4, leaves, {1, 3}, sums}), rest + 6) +
           request(push, worker, wire::encode(detail::push_message{1, 0, 0.1, 4, leaves}), all);
  };
  const auto pulls = request(pull, 1, wire::encode(detail::pull_message{1, false}), 0) +
                     request(pull, 1, wire::encode(detail::pull_message{0, true, true, {0, 7}}), 0) + request(leave, 1, "", 0);
  std::vector<std::string> inputs;
  for (const unsigned staleness : {0u, 1u, 2u})
    inputs.push_back(fuzz::with_choice(staleness, begin + pushes(0, 2, {1, 2}) + pushes(1, 2, {3, 4}) + pulls));
  return inputs;
}

struct server_and_answers : fuzz::small_server {
  using small_server::small_server;
  std::vector<int> answers{};  // the number of answers to each request

  void take(method m, int worker, std::string_view message, std::string_view elements) {
    const std::uint64_t incarnation = 7;
    const auto read = [&](void* to, std::size_t bytes) {
      fuzz::check(bytes <= elements.size());
      if (bytes > 0) std::memcpy(to, elements.data(), bytes);
      elements.remove_prefix(bytes);
    };
    const auto respond = [this, request = answers.size()](const parameter_answer<float>& a) {
      ++answers[request];
      if (a.weights) fuzz::look_at(std::span(a.weights.get(), std::size_t(a.count)));
    };
    answers.push_back(0);
    switch (m) {
      case join: {
        control::member who = wire::decode<control::join_request>(message).who;
        who.rank = worker, who.incarnation = incarnation;
        store.join(std::move(who));
        return respond({});
      }
      case leave:
        store.leave(worker, incarnation);
        return respond({});
      case assign: {
        const auto what = wire::decode<detail::assign_message>(message);
        return respond(store.assign(worker, incarnation, what.shard, what.is_initial, elements.size(), read));
      }
      case pull: {
        const auto what = wire::decode<detail::pull_message>(message);
        if (what.wants_rows) return store.pull_rows(worker, incarnation, what.shard, what.rows, &answers, respond);
        return store.pull(worker, incarnation, what.shard, what.had_weights, &answers, respond);
      }
      case push: {
        auto what = wire::decode<detail::push_message>(message);
        push_request p{worker,       incarnation, what.step, what.learning_rate,
                       what.samples, what.leaves, what.rows, what.metric_sums};
        return store.push(std::move(p), what.shard, &answers, elements.size(), read, respond);
      }
    }
    respond({});
  }
};

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  constexpr staleness_policy policies[] = {asynchronous{}, bounded_staleness{1}, synchronous{}};
  server_and_answers server(policies[chosen.number % 3]);
  for (std::string_view rest = chosen.rest; rest.size() > 3;) {
    const auto byte = [&](std::size_t i) { return unsigned(std::uint8_t(rest[i])); };
    const unsigned head = byte(0);
    const std::size_t message = std::min<std::size_t>(byte(1), rest.size() - 3),
                      elements = std::min(byte(2) * sizeof(float), rest.size() - 3 - message);
    try {
      server.take(method(head % 16 % 5), int(head >> 4) % 2, rest.substr(3, message), rest.substr(3 + message, elements));
    } catch (const wire::malformed_message&) {
      ++server.answers.back();
    }
    rest.remove_prefix(3 + message + elements);
  }
  fuzz::accepted([&] {
    server.store.tick();
    server.store.close();
    for (const int n : server.answers) fuzz::check(n == 1);
  });
}

const fuzz::target parameter_requests{"parameter_requests", seeds, read};
}  // namespace
