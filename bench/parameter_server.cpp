// Parameter servers: push and pull compared with bare messages, an embedding table of which only the rows of a batch are sent,
// and the cost of a worker that is three times slower.
// needs: openssl protozero
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/parameter_server/parameter_client.hpp>
#include <strata/parameter_server/parameter_service.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "machine.hpp"
#include "support/options.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::bench;

namespace {

constexpr int most_workers = 4;

std::vector<parameter_shard> shards_of(long size) { return detail::partition(size, sizeof(float), max_size_partitioner{}, 1); }
/// All parameters as one table whose rows have this many elements; 0: no table.
std::vector<row_table> table_of(long size, int width) {
  if (width == 0) return {};
  return {{0, int(size / width), width, 0}};
}
endpoint at(int port) { return {"127.0.0.1", std::uint16_t(port)}; }

/// A service that returns the elements that it receives.
class echo final : public detail::message_service {
  void handle(const std::shared_ptr<detail::served_call>& c, wire::envelope& received) override {
    c->is_of_member();  // may send large messages from then on
    const auto copy = std::make_shared<std::vector<std::byte>>(received.left());
    received.read(copy->data(), copy->size());
    c->answer(wire::sealed(control::empty_message{}, {wire::shared_array(copy, copy->data(), copy->size())}));
  }
  void forget(const detail::served_call&) override {}
};

/// The main function of a child process, which runs both servers until the parent ends.
int serve(int port, long size, const std::string& staleness, int width) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  parameter_store_options options{.staleness = asynchronous{}, .workers = std::vector<std::string>(most_workers, "worker")};
  options.timeout = std::chrono::seconds(2);  // at the end of a synchronous run, workers wait for those that have stopped
  options.tables = table_of(size, width);
  if (staleness == "synchronous") options.staleness = synchronous{};
  if (staleness == "bounded") options.staleness = bounded_staleness{4};
  const std::vector<parameter_range> trained{{0, size}};
  parameter_store<float, sgd> store(sgd{}, trained, shards_of(size), options);
  const parameter_service service(at(port), "ps 0", "bench", "bench", store);
  echo bare;
  const detail::message_server server(at(port + 1), "echo", bare, {}, {.largest_message = 8 << 20});
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) store.tick();
}

class server_process {
  pid_t child_ = 0;

 public:
  server_process(int port, long size, const std::string& staleness, int width = 0) {
    std::vector<std::string> words{"parameter_server",   "--serve", std::to_string(port),
                                   std::to_string(size), staleness, std::to_string(width)};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawn(&child_, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0)
      throw strata_error("cannot start a server");
  }
  ~server_process() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;
};

parameter_client<float> client_of(int port, long size, int worker, int workers, bool is_synchronous, int width = 0) {
  return {{at(port)},
          shards_of(size),
          {.worker = worker,
           .workers = workers,
           .synchronous = is_synchronous,
           .run = "bench",
           .program = "bench",
           .start_timeout = std::chrono::seconds(10),
           .tables = table_of(size, width)}};
}

/// The median of several runs, in milliseconds.
double median_ms(int runs, const std::function<void()>& once) {
  once();
  std::vector<double> times;
  for (int r = 0; r < runs; ++r) {
    const double start = now();
    once();
    times.push_back(1e3 * (now() - start));
  }
  std::ranges::nth_element(times, times.begin() + runs / 2);
  return times[std::size_t(runs / 2)];
}

/// Sends the same messages to a server that returns them.
class bare_messages {
  std::shared_ptr<detail::message_connection> connection_;
  std::vector<wire::shared_bytes> messages_;

  static std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }
  static wire::sealed_message sealed(std::vector<wire::shared_bytes> elements) {
    return wire::sealed(wire::sender{}, control::empty_message{}, std::move(elements));
  }

 public:
  bare_messages(int port, const std::vector<float>& numbers)
      : connection_(detail::server_connection(at(port), {}, 8 << 20).open(soon()).open) {
    if (!connection_) throw strata_error("no echo");
    for (const parameter_shard& s : shards_of(long(numbers.size())))
      messages_.push_back(wire::shared_array({}, numbers.data() + s.begin, std::size_t(s.size())));
    detail::call_and_wait(connection_, "/echo", sealed({}), soon());
  }
  void round_trip(std::vector<float>& back) {
    const auto shards = shards_of(long(back.size()));
    detail::calls_of_thread calls;
    for (std::size_t k = 0; k < messages_.size(); ++k) calls.begin(connection_, "/echo", sealed({messages_[k]}), soon(), k);
    while (!calls.empty()) {
      const detail::ended_call c = *calls.next();
      if (!c.end.status.ok()) throw strata_error(c.end.status.text);
      wire::envelope answer(c.end.frame.content());
      answer.read(back.data() + shards[c.tag].begin, answer.left());
    }
  }
};

void round_trips(int port, int rounds) {
  std::printf("push and pull, round trip, ms: median of %d rounds, in turn\n", rounds);
  for (const long bytes : {4l << 10, 1l << 20, 40l << 20}) {
    const long size = bytes / long(sizeof(float));
    const server_process server(port, size, "asynchronous");
    auto client = client_of(port, size, 0, 1, false);
    std::vector<float> weights(std::size_t(size), 1.0f);
    auto gradient = std::make_shared<arena<float>>(std::size_t(size));
    client.assign(weights.data(), true);
    pushed_gradient<float> pushed{.sums = gradient, .stride = size, .learning_rate = 0.1, .samples = 1};
    const std::vector<float> sent(weights);
    bare_messages bare(port + 1, sent);
    const int runs = bytes > (1 << 20) ? 10 : 100;
    std::vector<double> ours, theirs;
    for (int r = 0; r < rounds; ++r) {
      theirs.push_back(median_ms(runs, [&] { bare.round_trip(weights); }));
      ours.push_back(median_ms(runs, [&] {
        client.push(pushed, weights.data());
        ++pushed.step;
      }));
    }
    std::ranges::sort(ours), std::ranges::sort(theirs);
    const double mine = ours[ours.size() / 2], bare_ms = theirs[theirs.size() / 2];
    std::printf("  %6ld KB   bare messages %8.3f   parameter server %8.3f   %.2f times\n", bytes >> 10, bare_ms, mine,
                mine / bare_ms);
    port += 2;
  }
}

/// Compares sending a whole table with sending only the rows that a batch reads.
void tables(int port, int rounds) {
  constexpr int rows = 100'000, width = 16, batch = 64;
  constexpr long size = long(rows) * width;
  std::printf("a table of %d x %d, of which a batch reads %d rows: round trip, ms: median of %d rounds, in turn\n", rows, width,
              batch, rounds);
  const server_process whole_server(port, size, "asynchronous"), row_server(port + 2, size, "asynchronous", width);
  auto whole = client_of(port, size, 0, 1, false), by_rows = client_of(port + 2, size, 0, 1, false, width);
  std::vector<float> weights(std::size_t(size), 1.0f);
  auto gradient = std::make_shared<arena<float>>(std::size_t(size));
  for (auto* client : {&whole, &by_rows}) client->assign(weights.data(), true);
  std::vector<std::uint32_t> read;
  for (int i = 0; i < batch; ++i) read.push_back(std::uint32_t(i * (rows / batch)));
  pushed_gradient<float> pushed{.sums = gradient, .stride = size, .learning_rate = 0.1, .samples = batch, .rows = read};
  std::vector<double> all, some;
  for (int r = 0; r < rounds; ++r) {
    all.push_back(median_ms(10, [&] {
      whole.push(pushed, weights.data());
      ++pushed.step;
    }));
    some.push_back(median_ms(100, [&] {
      by_rows.pull_rows(read, weights.data());
      by_rows.push(pushed, weights.data());
      ++pushed.step;
    }));
  }
  std::ranges::sort(all), std::ranges::sort(some);
  std::printf("  all rows %8.3f   those %8.3f\n", all[all.size() / 2], some[some.size() / 2]);
}

/// Batches per second of all workers. The last worker takes `slowness` times as long per batch. A worker sleeps instead of
/// computing, so the number of cores does not matter.
double speed(int port, const std::string& staleness, double slowness, double seconds) {
  constexpr long size = 100'000;
  constexpr int batch_ms = 10;
  const bool sync = staleness == "synchronous";
  const server_process server(port, size, staleness);
  std::vector<parameter_client<float>> clients;
  for (int w = 0; w < most_workers; ++w) clients.push_back(client_of(port, size, w, most_workers, sync));
  std::vector<float> first(size, 1.0f);
  clients[0].assign(first.data(), true);
  std::vector<std::atomic<long>> batches(most_workers);
  std::vector<std::thread> threads;
  const double until = now() + seconds;
  std::atomic<bool> over = false;
  for (int w = 0; w < most_workers; ++w)
    threads.emplace_back([&, w] {
      std::vector<float> weights(size);
      const auto gradient = std::make_shared<arena<float>>(std::size_t(size));
      const auto pause = std::chrono::duration<double, std::milli>(batch_ms * (w == most_workers - 1 ? slowness : 1));
      try {
        while (!over) {
          std::this_thread::sleep_for(pause);
          const long number = batches[std::size_t(w)];
          pushed_gradient<float> g{.sums = gradient,
                                   .stride = size,
                                   .step = number,
                                   .learning_rate = 0.1,
                                   .samples = 4,
                                   .leaves = sync ? most_workers : 1};
          clients[std::size_t(w)].push(g, weights.data());
          ++batches[std::size_t(w)];
          if (now() > until) break;
        }
      } catch (const communication_error&) {  // in synchronous mode another worker has ended
      }
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(until - now()));
  long done = 0;
  for (const auto& b : batches) done += b;
  over = true;
  for (std::thread& t : threads) t.join();
  return double(done) / seconds;
}

void slow_worker(int port, double seconds) {
  std::printf("%d workers, one of them 3 times slower: batches/s of all\n", most_workers);
  for (const char* staleness : {"asynchronous", "bounded", "synchronous"}) {
    const double equal = speed(port, staleness, 1, seconds), slow = speed(port + 2, staleness, 3, seconds);
    std::printf("  %-14s equal %7.1f   one slow %7.1f   %.0f %% kept\n", staleness, equal, slow, 100 * slow / equal);
    port += 4;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 6 && std::string(argv[1]) == "--serve")
    return serve(std::stoi(argv[2]), std::stol(argv[3]), argv[4], std::stoi(argv[5]));
  int port = 21'900, rounds = 5;
  double seconds = 3;
  strata::bench::options("Round trips, tables and slow workers of a parameter server.")
      .add("--rounds", rounds, "how often all measurements are repeated in turn")
      .add("--seconds", seconds, "for each measurement of a slow worker")
      .add("--port", port, "port of the first server")
      .smoke("--rounds 1 --seconds 0.2")
      .parse(argc, argv);
  round_trips(port, rounds);
  tables(port + 10, rounds);
  slow_worker(port + 20, seconds);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
