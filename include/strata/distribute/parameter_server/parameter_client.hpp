// A worker's connections to the parameter servers.
// needs: grpc
#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <strata/base/stopwatch.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/cluster.hpp>
#include <strata/distribute/parameter_server/parameter_executor.hpp>
#include <strata/distribute/parameter_server/parameter_membership.hpp>
#include <strata/distribute/parameter_server/parameter_rows.hpp>
#include <strata/distribute/parameter_server/parameter_service.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

struct parameter_client_options {
  int worker = 0, workers = 1;
  bool synchronous = false;
  std::size_t tally_width = 0;  // as in parameter_store_options
  std::string run{}, program{};
  control_options control{};
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  std::chrono::milliseconds retry_for = std::chrono::seconds(3);
  std::vector<row_table> tables{};  // as in parameter_store_options
};

/// All shards are pushed and pulled at once, each in one message. A call that finds its server unavailable is repeated for a
/// while; then communication_error names the server, as it does for what the server says about other workers.
template <class T>
class parameter_client {
  using clock = std::chrono::steady_clock;
  using header = detail::parameter_header;
  struct server {
    endpoint where;
    std::unique_ptr<grpc::GenericStub> stub;
    std::unique_ptr<detail::parameter_membership> place{};  // ends before its stub
  };
  struct call {
    std::size_t shard;
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer answer;
    grpc::Status status;
    long joins = 0;  // to the server, when it was made
    std::optional<clock::time_point> unavailable_since{}, empty_since{};
  };

  std::vector<server> servers_;
  std::vector<parameter_shard> shards_;
  parameter_client_options options_;
  std::vector<shard_contents> contents_;
  std::uint64_t run_, incarnation_;
  bool has_weights_ = false;  // of the servers
  double calling_ = 0, waiting_ = 0;

 public:
  /// Joins all servers. Throws communication_error if one does not come in time, strata::error if it serves another training.
  parameter_client(const std::vector<endpoint>& servers, std::vector<parameter_shard> shards, parameter_client_options options)
      : shards_(std::move(shards)), options_(std::move(options)), contents_(contents_of(shards_, options_.tables)),
        run_(detail::hash_of(options_.run)) {
    std::random_device random;
    incarnation_ = std::uint64_t(random()) << 32 | random();
    for (const endpoint& where : servers)
      servers_.push_back({where, std::make_unique<grpc::GenericStub>(
                                     detail::watched_channel(where, options_.control, std::size_t(2 * largest_shard_bytes)))});
    for (std::size_t s = 0; s < servers_.size(); ++s) {
      servers_[s].place = std::make_unique<detail::parameter_membership>(name_of(s), *servers_[s].stub, own_header(),
                                                                         options_.program, options_.retry_for);
      servers_[s].place->join(options_.start_timeout);
    }
  }
  parameter_client(parameter_client&&) = default;
  parameter_client& operator=(parameter_client&&) = delete;

  int rank() const { return options_.worker; }
  int size() const { return options_.workers; }
  bool is_synchronous() const { return options_.synchronous; }
  double communicating() const { return calling_ - waiting_; }
  double waiting() const { return waiting_; }

  void assign(const T* weights, bool initial) {
    for_all_shards(
        detail::parameter_methods::assign, [&](std::size_t k) { return assignment(k, weights, initial); },
        [](std::size_t, detail::message_reader&, long) {});
  }

  long pull(T* weights) {
    header h = own_header();
    h.flags = has_weights_ ? detail::again_flag : 0;
    long updates = 0;
    const auto message = [&](std::size_t k) {
      h.shard = std::uint32_t(k);
      return std::vector{detail::slice_of(h)};
    };
    for_all_shards(
        detail::parameter_methods::pull, message,
        [&](std::size_t k, detail::message_reader& read, long version) {
          const element_run all{0, shards_[k].size()};
          take(k, {&all, 1}, read, weights);
          if (k == 0) updates = version;
        },
        has_weights_ ? weights : nullptr);
    has_weights_ = true;
    return updates;
  }

  /// Only from shards that have any of them.
  void pull_rows(std::span<const std::uint32_t> rows, T* weights) {
    header h = own_header();
    h.flags = detail::again_flag | detail::rows_flag;
    std::vector<std::size_t> numbers;
    for (std::size_t k = 0; k < shards_.size(); ++k)
      if (contents_[k].has_any(rows)) numbers.push_back(k);
    const auto message = [&](std::size_t k) {
      h.shard = std::uint32_t(k);
      return std::vector{detail::slice_of(h), names_of(k, rows)};
    };
    const auto take_pieces = [&](std::size_t k, detail::message_reader& read, long) {
      take(k, contents_[k].pieces_of(rows), read, weights);
    };
    const detail::stopwatch running(calling_);
    for_shards(numbers, detail::parameter_methods::pull, message, take_pieces, weights);
  }

  long push(pushed_gradient<T>& g, T* weights) {
    header h = own_header();
    h.step = g.step, h.learning_rate = g.learning_rate, h.samples = std::uint32_t(g.samples),
    h.leaves = std::uint16_t(g.leaves);
    long updates = 0;
    const auto message = [&](std::size_t k) {
      h.shard = std::uint32_t(k);
      std::vector<grpc::Slice> slices{detail::slice_of(h)};
      if (contents_[k].has_tables()) slices.push_back(names_of(k, g.rows));
      for (int part = 0; part < g.parts; ++part) slices.push_back(gradient_of(k, g, part));
      if (k == 0 && !g.tallies.empty()) slices.push_back(grpc::Slice(g.tallies.data(), g.tallies.size() * sizeof(double)));
      return slices;
    };
    std::vector<double> tallies(options_.synchronous ? std::size_t(g.leaves) * options_.tally_width : 0);
    for_all_shards(
        detail::parameter_methods::push, message,
        [&](std::size_t k, detail::message_reader& read, long version) {
          if (k == 0) {
            updates = version;
            take(k, contents_[k].rest(), read, weights, tallies.size() * sizeof(double));
            read(tallies.data(), tallies.size() * sizeof(double));
          } else {
            take(k, contents_[k].rest(), read, weights);
          }
        },
        weights);
    g.tallies = std::move(tallies);
    return updates;
  }

 private:
  std::size_t bytes_of(std::size_t shard) const { return std::size_t(shards_[shard].size()) * sizeof(T); }
  header own_header() const {
    header h;
    h.run = run_, h.worker = std::uint32_t(options_.worker), h.incarnation = incarnation_;
    return h;
  }
  std::string name_of(std::size_t s) const {
    return to_string(cluster_task{role::ps, int(s)}) + " at " + to_string(servers_[s].where);
  }

  std::vector<grpc::Slice> assignment(std::size_t k, const T* weights, bool initial) const {
    header h = own_header();
    h.flags = initial ? detail::initial_flag : 0;
    h.shard = std::uint32_t(k);
    return {detail::slice_of(h), grpc::Slice(weights + shards_[k].begin, bytes_of(k))};
  }
  grpc::Slice names_of(std::size_t k, std::span<const std::uint32_t> rows) const {
    const std::vector<std::uint32_t> names = contents_[k].names_of(rows);
    return grpc::Slice(names.data(), names.size() * sizeof(std::uint32_t));
  }
  grpc::Slice gradient_of(std::size_t k, const pushed_gradient<T>& g, int part) const {
    const T* const begin = g.sums->data() + part * g.stride + shards_[k].begin;
    if (!contents_[k].has_tables())
      return detail::slice_of_shared<T>({g.sums, begin}, begin, std::size_t(shards_[k].size()));
    std::vector<element_run> runs = contents_[k].pieces_of(g.rows);
    runs.insert(runs.begin(), contents_[k].rest().begin(), contents_[k].rest().end());
    const auto count = std::size_t(count_elements(runs));
    const auto copy = std::make_shared<T[]>(count);
    pack(begin, runs, copy.get());
    return detail::slice_of_shared<T>({copy, copy.get()}, copy.get(), count);
  }
  void take(std::size_t k, std::span<const element_run> runs, detail::message_reader& read, T* weights,
            std::size_t more = 0) const {
    const std::size_t wanted = std::size_t(count_elements(runs)) * sizeof(T) + more;
    if (read.left() != wanted)
      throw communication_error(name_of(std::size_t(shards_[k].server)) + " answers with " + std::to_string(read.left()) +
                                " bytes instead of " + std::to_string(wanted));
    for (const element_run& r : runs) read(weights + shards_[k].begin + r.begin, std::size_t(r.size()) * sizeof(T));
  }

  /// Calls a method for each shard, all at once: message(shard) gives slices, take(shard, reader, version) gets the answer.
  /// `weights` are those that a server gets which has been started again and has none.
  template <class Message, class Take>
  void for_all_shards(const char* method, Message&& message, Take&& take, const T* weights = nullptr) {
    std::vector<std::size_t> all(shards_.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    const detail::stopwatch running(calling_);
    for_shards(all, method, message, take, weights);
  }
  template <class Message, class Take>
  void for_shards(std::span<const std::size_t> numbers, const char* method, Message&& message, Take&& take, const T* weights) {
    grpc::CompletionQueue queue;
    std::vector<call> calls(numbers.size());
    std::size_t open = 0;
    const auto start = [&](call& c) {
      c.context = std::make_unique<grpc::ClientContext>();
      // The server complains first; a channel that finds no connection fails after 2 s of each attempt by itself.
      c.context->set_deadline(std::chrono::system_clock::now() + options_.timeout + std::chrono::seconds(5));
      c.joins = server_of(c).place->joins();
      const std::vector<grpc::Slice> slices = message(c.shard);
      c.reader =
          server_of(c).stub->PrepareUnaryCall(c.context.get(), method, grpc::ByteBuffer(slices.data(), slices.size()), &queue);
      c.reader->StartCall();
      c.reader->Finish(&c.answer, &c.status, &c);
      ++open;
    };
    const auto give_up = [&] {
      for (call& c : calls)
        if (c.context) c.context->TryCancel();
      void* tag = nullptr;
      for (bool ok = false; open > 0; --open) queue.Next(&tag, &ok);
    };
    try {
      for (std::size_t k = 0; k < calls.size(); ++k) {
        calls[k].shard = numbers[k];
        start(calls[k]);
      }
      while (open > 0) {
        void* tag = nullptr;
        bool ok = false;
        {
          const detail::stopwatch until_an_answer(waiting_);
          queue.Next(&tag, &ok);
        }
        --open;
        call& c = *static_cast<call*>(tag);
        if (c.status.ok()) {
          detail::message_reader read(c.answer);
          header h;
          if (read.left() < sizeof h) throw communication_error(name_of(c) + " answers with too short a message");
          read(&h, sizeof h);
          if (!h.is_ours()) throw communication_error(name_of(c) + " answers with something else than weights");
          take(c.shard, read, long(h.step));
        } else if (is_worth_a_retry(c, weights)) {
          start(c);
        } else {
          complain(c);
        }
      }
    } catch (...) {
      give_up();
      throw;
    }
  }

  server& server_of(const call& c) { return servers_[std::size_t(shards_[c.shard].server)]; }
  std::string name_of(const call& c) const { return name_of(std::size_t(shards_[c.shard].server)); }

  bool is_worth_a_retry(call& c, const T* weights) {
    using namespace std::chrono_literals;
    const auto lasts = [](std::optional<clock::time_point>& since) {
      if (!since) since = clock::now();
      return clock::now() - *since;
    };
    const auto has_joined_again = [&] {
      const detail::stopwatch until_it_is_back(waiting_);
      return server_of(c).place->has_joined_again(c.joins, 200ms);
    };
    if (c.status.error_code() != grpc::StatusCode::UNAVAILABLE) c.unavailable_since.reset();
    switch (c.status.error_code()) {
      case grpc::StatusCode::UNAVAILABLE:
        if (has_joined_again()) return c.unavailable_since.reset(), true;
        return lasts(c.unavailable_since) < options_.retry_for;
      case grpc::StatusCode::FAILED_PRECONDITION:  // a server that has been started again knows nobody yet
        return has_joined_again();
      case grpc::StatusCode::NOT_FOUND:  // it has no weights, either
        if (!weights || options_.synchronous) return false;
        if (options_.worker != 0) {
          const detail::stopwatch until_the_chief_assigns(waiting_);
          std::this_thread::sleep_for(20ms);
          return lasts(c.empty_since) < options_.timeout;
        }
        std::clog << name_of(c) + " has been started again without a snapshot: shard " + std::to_string(c.shard) +
                         " goes on with the weights of this process and a new optimizer, whose updates count from 0\n";
        for_shards(
            std::span(&c.shard, 1), detail::parameter_methods::assign,
            [&](std::size_t k) { return assignment(k, weights, true); }, [](std::size_t, detail::message_reader&, long) {},
            nullptr);
        return true;
      default:
        return false;
    }
  }
  [[noreturn]] void complain(const call& c) const {
    const std::string who = name_of(c);
    switch (c.status.error_code()) {
      case grpc::StatusCode::ABORTED:
        throw communication_error(c.status.error_message());
      case grpc::StatusCode::UNAVAILABLE:
        throw communication_error(who + " is gone: " + c.status.error_message());
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        throw communication_error(who + " does not answer");
      default:
        throw communication_error(who + " refuses: " + c.status.error_message());
    }
  }
};

}  // namespace strata
