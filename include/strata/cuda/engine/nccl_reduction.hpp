// The reduction of processes with GPUs: through host memory, or by NCCL.
#pragma once
#include <chrono>
#include <cstring>
#include <strata/base/text.hpp>
#include <strata/cuda/engine/engine.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <utility>
#include <vector>

namespace strata::detail {

template <class Program, communicator C>
class process_reduction<cuda_engine<Program>, C> : public reduction_through_host<cuda_engine<Program>, C> {
  using engine_type = cuda_engine<Program>;
  using T = typename Program::value_type;
  using through_host = reduction_through_host<engine_type, C>;

  /// Sent by each process to all others before the first sum. The group is that of rank 0.
  struct introduction {
    int devices;
    machine::nccl_id group;
  };

  std::vector<gradient_bucket> buckets_;
  T* sum_[1] = {};
  bool is_connected_ = false;

 public:
  void prepare(C& c, const engine_type& engine, std::vector<gradient_bucket> buckets, int leaves, reduction_options options) {
    if (!engine.adds_by_nccl()) return through_host::prepare(c, engine, std::move(buckets), leaves, options);
    if (options.rounds)
      throw_error(
          "communication_options.bf16_gradients: NCCL does not round gradients: use deterministic{} instead of fastest{}");
    buckets_ = std::move(buckets);
  }
  void drop_rounding_errors() {
    if (buckets_.empty()) through_host::drop_rounding_errors();
  }

  void begin(C& c, engine_type& engine) {
    if (!engine.adds_by_nccl()) return through_host::begin(c, engine);
    if (!std::exchange(is_connected_, true)) connect(c, engine);
  }
  global_gradient<T, cuda_device> finish(C& c, host_side<engine_type>& side, engine_type& engine, long samples) {
    if (!engine.adds_by_nccl()) return through_host::finish(c, side, engine, samples);
    c.wait("gradients");
    sum_[0] = engine.gradients().arrays[0];
    return this->template reduced<cuda_device>(sum_, 1, samples);
  }

 private:
  void connect(C& c, engine_type& engine) {
    introduction own{engine.devices(), {}};
    if (c.rank() == 0) own.group = machine::make_nccl_id();
    auto memory = c.allocate(std::size_t(c.size()) * sizeof own);
    const auto at = [](int rank) { return std::size_t(rank) * sizeof(introduction); };
    std::memcpy(memory.data() + at(c.rank()), &own, sizeof own);
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) continue;
      c.receive(memory, at(r), sizeof own, r);
      c.send(memory, at(c.rank()), sizeof own, r);
    }
    c.wait("the group of NCCL");
    int first = 0, all = 0;
    for (int r = 0; r < c.size(); ++r) {
      introduction theirs;
      std::memcpy(&theirs, memory.data() + at(r), sizeof theirs);
      if (r == 0) own.group = theirs.group;
      if (r == c.rank()) first = all;
      all += theirs.devices;
    }
    engine.connect(own.group, first, all, buckets_, watch(c));
  }

  static nccl_watch watch(const C& c) {
    using clock = std::chrono::steady_clock;
    if constexpr (requires(C own) { own.check("sums of NCCL", own.time()); }) {
      return [own = c, began = clock::time_point()](nccl_event what, const std::string& error) mutable {
        switch (what) {
          case nccl_event::wait_begins:
            began = own.time();
            break;
          case nccl_event::waits:
            own.check("sums of NCCL", began);
            break;
          case nccl_event::sums_fail:
            own.throw_first_error(error);
          case nccl_event::own_error:
            own.announce_error(error);
        }
      };
    } else {
      return [rank = c.rank(), began = clock::time_point()](nccl_event what, const std::string&) mutable {
        constexpr long most = 30000;
        if (what == nccl_event::wait_begins)
          began = clock::now();
        else if (what == nccl_event::waits && clock::now() - began > std::chrono::milliseconds(most))
          throw communication_error(text_of({"sums of NCCL: process ", rank, " has waited ", most, " ms for another process"}));
      };
    }
  }
};

}  // namespace strata::detail
