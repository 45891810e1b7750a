// The engine of a program that is split into stages, where each place is a process.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/cpu/engine/split_engine.hpp>
#include <vector>

namespace strata {

// Of distribute/synchronous, which strategies of several processes include.
template <communicator C>
class leaf_exchange;
template <communicator C>
class process_group_over;

template <communicator Communicator>
struct process_split_options : compute_options {
  process_group_over<Communicator>* group = nullptr;  // it outlives the engine
};

/// Process p computes the stages of place p, with one thread, for the whole batch. It updates the parameters of these stages and
/// sends them to the others after each step, so that every process has all of them. An evaluation is divided by leaves. All
/// processes make the same calls; the executor need not know that there are several. What the optimizer keeps is complete after
/// collect_slots(). compute_options::threads: that update, evaluate and predict.
template <class Program, class Backend>
class process_split_engine : public split_engine<Program, Backend> {
  using base = split_engine<Program, Backend>;
  using cpu = cpu_engine<Program, Backend>;
  using base::layout, base::leaves_, base::plan, base::stages, base::table, base::micro_batches;
  using typename base::T, typename base::row, typename base::leaf, typename base::piece, typename base::table_type;
  using communicator = typename Backend::communicator;
  using group_type = process_group_over<communicator>;
  using memory = typename communicator::memory;
  static constexpr auto events = detail::events_of(stages);
  static constexpr auto trained = trained_ranges(layout);
  static constexpr long elements_on_the_way = 1 << 20;

  group_type* group_;
  int rank_, processes_;
  // For each transfer between processes: a place for each micro-batch of a step, so that nothing has to wait for room.
  std::vector<memory> messages_;
  int room_ = 0;  // micro-batches
  memory sums_on_the_way_{}, parts_{}, numbers_{};
  std::size_t sums_size_ = 0;
  std::vector<double> counts_;  // samples of the batches of all processes
  leaf_exchange<std::remove_reference_t<decltype(std::declval<group_type&>().processes())>> counting_, measuring_;
  std::vector<std::vector<element_range>> ranges_of_process_;  // of the trained parameters

 public:
  using options = process_split_options<communicator>;

  process_split_engine(const options& how, leaf_policy policy, int slots)
      : base(with_threads(how), policy, slots, 1), group_(how.group), rank_(group_->rank()), processes_(group_->size()) {
    auto& c = group_->processes();
    counts_.resize(std::size_t(processes_));
    counting_.prepare(c, 1, processes_);
    ranges_of_process_.resize(std::size_t(processes_));
    for (int k = 0, s = 0; s < layout.count; ++s) {
      if (!layout.slots[s].what.trainable) continue;
      const auto& range = trained.ranges[k++];
      const int place = table_type::place_of(stages.stage_of[plan.group_of[layout.slots[s].node]]);
      auto& all = ranges_of_process_[std::size_t(place)];
      if (!all.empty() && all.back().end == range.begin)
        all.back().end = range.end;
      else
        all.push_back({range.begin, range.end});
    }
    parts_ = c.allocate(std::size_t(processes_ * part()) * sizeof(T));
    numbers_ = c.allocate(std::size_t(base::update_type::norm_count(trained.span())) * sizeof(double));
  }

  int prepare(int batch, purpose why, int) {
    const int leaves = base::prepare(batch, why, 1);
    if (leaves > 0 && why == purpose::inference) measuring_.prepare(group_->processes(), leaf::size, leaves);
    if (leaves > 0 && why == purpose::training) make_room(leaves);
    return leaves;
  }

  /// Throws strata::error if the processes do not have batches of the same size.
  void begin(purpose why, const samples<T>& batch, philox random, int = 0, int = 1) {
    if (why == purpose::inference) return base::begin(why, batch, random, rank_, processes_);
    base::begin(why, batch, random);
  }

  template <class Done>
  void forward_backward(Done&&) {
    refuse_other_batches();
    this->prepare_sums();
    {
      const flush_denormals scope;
      row& r = *this->rows_.front();
      sent_messages messages{*this, r};
      this->compute(r, rank_, messages);
    }
    group_->processes().wait("the last activations and gradients");
    share_sums();
  }

  void update(const typename Program::optimizer& rules, long step, double rate, const global_gradient<T, host_device>& gradient) {
    rules.template with_rule<T>(step, rate, [&]<class Rule>(const Rule& rule) {
      typename cpu::template slot_pointers<Rule::slots> slots(*this);
      const typename base::update_type all{
          rules, rate, this->ranges_.span(), this->weights_.data(), slots.at, this->norms_.data()};
      const auto in_parts = [&](auto&& f) {
        const int count = this->team().size();
        this->team().for_tasks(count, [&](int i, int) {
          for (const element_range& own : ranges_of_process_[std::size_t(rank_)])
            if (const element_range part = slice_of(own, i, count); part.size() > 0) f(all, gradient, part.begin, part.end);
        });
      };
      all.run_parts(rule, in_parts, [&](double* numbers, int arrays) { share_norms(numbers, arrays); });
    });
    share(this->weights_.data(), "parameters", [](int) { return true; });
    this->parameters_changed();
  }

  /// All processes call it: the chief gets what the optimizer keeps for all parameters, or all processes do.
  void collect_slots(bool in_all) {
    for (long k = 0; k < long(this->slots_.size()) / std::max(1L, long{layout.trainable}); ++k)
      share(this->slots_.data() + k * layout.trainable, "slots", [&](int to) { return in_all || to == 0; });
  }

  void measure() {
    base::measure();
    auto& c = group_->processes();
    measuring_.begin(c, leaves_.leaves(), leaf::size, [&](int l) { return this->sums(l); });
    c.wait("metrics");
    measuring_.finish(c, leaves_.leaves(), leaf::size, [&](int l) { return this->sums(l); });
  }

 private:
  static compute_options with_threads(const options& how) {
    compute_options all = how;
    all.threads = how.threads > 0 ? how.threads : available_cores();
    return all;
  }
  static bool is_message(const stage_transfer& t) { return table_type::place_of(t.from) != table_type::place_of(t.to); }
  bool concerns(const stage_transfer& t) const {
    return is_message(t) && (table_type::place_of(t.from) == rank_ || table_type::place_of(t.to) == rank_);
  }
  std::size_t bytes_of(const stage_transfer& t) const { return std::size_t(this->capacity_) * std::size_t(t.size) * sizeof(T); }

  void make_room(int leaves) {
    auto& c = group_->processes();
    room_ = 0;
    for (int count = 1; count <= leaves_.prepared_for(purpose::training); ++count) {
      const auto [l, capacity] = this->policy_(count);
      const int samples = this->samples_of_piece(capacity, l);
      room_ = std::max(room_, l * ((capacity + samples - 1) / samples));
    }
    messages_.clear();
    for (int t = 0; t < stages.transfer_count; ++t)
      messages_.push_back(c.allocate(concerns(stages.transfers[t]) ? std::size_t(room_) * bytes_of(stages.transfers[t]) : 0));
    sums_size_ = std::size_t(leaves) * leaf::size;
    sums_on_the_way_ = c.allocate(sums_size_ * sizeof(double));
  }

  void refuse_other_batches() {
    auto& c = group_->processes();
    counts_[std::size_t(rank_)] = leaves_.batch().count;
    counting_.begin(c, processes_, 1, [&](int r) { return &counts_[std::size_t(r)]; });
    c.wait("the sizes of batches");
    counting_.finish(c, processes_, 1, [&](int r) { return &counts_[std::size_t(r)]; });
    for (int r = 0; r < processes_; ++r)
      if (counts_[std::size_t(r)] != leaves_.batch().count)
        throw_error({"the processes do not read the same batches: here is one of ", leaves_.batch().count,
                     " samples, in process ", r, " one of ", long(counts_[std::size_t(r)])});
  }

  /// Between processes. Messages of one process arrive in the order in which it sends them, which its turns tell: before this
  /// process waits for one, it begins to receive those before it, which were sent earlier.
  struct sent_messages {
    process_split_engine& engine;
    row& of;
    struct {
      int round = 0, turn = 0, event = 0;
    } at[table_type::places] = {};              // in the turns of each process: what comes next
    int begun[stages.transfer_count + 1] = {};  // micro-batches

    void wait(int t, int number) {
      const stage_transfer& it = stages.transfers[t];
      if (!is_message(it)) return;
      auto& c = engine.group_->processes();
      while (begun[t] <= number) receive_next(table_type::place_of(it.from));
      c.wait_received(it.of_gradient ? "gradients of activations" : "activations", c.begun());
      const T* const from =
          reinterpret_cast<const T*>(engine.messages_[std::size_t(t)].data() + std::size_t(number) * engine.bytes_of(it));
      std::copy_n(from, long(of.pieces[std::size_t(number)].count) * it.size, of.memory[it.to].at(it.target, number));
    }
    void send(int t, int number, int count) {
      const stage_transfer& it = stages.transfers[t];
      if (!is_message(it)) return base::copy(of, it, number, count);
      const std::size_t offset = std::size_t(number) * engine.bytes_of(it);
      std::copy_n(of.memory[it.from].at(it.source, number), long(count) * it.size,
                  reinterpret_cast<T*>(engine.messages_[std::size_t(t)].data() + offset));
      engine.group_->processes().send(engine.messages_[std::size_t(t)], offset, size_of(it, number), table_type::place_of(it.to));
    }
    static void release(int) {}

   private:
    std::size_t size_of(const stage_transfer& t, int number) const {
      return std::size_t(of.pieces[std::size_t(number)].count) * std::size_t(t.size) * sizeof(T);
    }
    void receive_next(int process) {
      for (auto& next = at[process];;) {
        const turn& now = table.turns[std::size_t(process)][std::size_t(next.turn)];
        const int number = next.round * micro_batches + now.micro_batch;
        const bool exists = number < int(of.pieces.size());
        while (exists && next.event < events.count[now.backward][now.stage]) {
          const auto& e = events.events[now.backward][now.stage][next.event++];
          const stage_transfer& it = stages.transfers[e.transfer];
          if (!e.sends || !is_message(it) || table_type::place_of(it.to) != engine.rank_) continue;
          engine.group_->processes().receive(engine.messages_[std::size_t(e.transfer)], std::size_t(number) * engine.bytes_of(it),
                                             size_of(it, number), process);
          begun[e.transfer] = number + 1;
          return;
        }
        next.event = 0;
        if (++next.turn == table_type::turns_of_place) next.turn = 0, ++next.round;
      }
    }
  };

  /// The sums of all leaves are those of the process with the outputs.
  void share_sums() {
    constexpr int with_outputs = table_type::place_of(stages.stage_of[plan.output_group[0]]);
    auto& c = group_->processes();
    double* const all = reinterpret_cast<double*>(sums_on_the_way_.data());
    const auto for_leaves = [&](auto&& f) {
      for (int l = 0; l < leaves_.leaves(); ++l) f(this->sums(l), all + std::size_t(l) * leaf::size);
    };
    const std::size_t bytes = std::size_t(leaves_.leaves()) * leaf::size * sizeof(double);
    if (rank_ == with_outputs) {
      for_leaves([](const double* from, double* to) { std::copy_n(from, leaf::size, to); });
      for (int r = 0; r < processes_; ++r)
        if (r != rank_) c.send(sums_on_the_way_, 0, bytes, r);
    } else {
      c.receive(sums_on_the_way_, 0, bytes, with_outputs);
    }
    c.wait("metrics");
    if (rank_ != with_outputs) for_leaves([](double* to, const double* from) { std::copy_n(from, leaf::size, to); });
  }

  /// Elements of one process in one message.
  long part() const { return std::min(long{layout.trainable} + 1, std::max(norm_piece, elements_on_the_way / processes_)); }

  /// Completes an arena of which each process has its own ranges, in those processes for which gets(rank) is true.
  template <class Gets>
  void share(T* arena, const char* what, Gets&& gets) {
    auto& c = group_->processes();
    T* const on_the_way = reinterpret_cast<T*>(parts_.data());
    std::size_t most = 0;
    for (const auto& ranges : ranges_of_process_) most = std::max(most, ranges.size());
    for (std::size_t k = 0; k < most; ++k) {
      const auto range_of = [&](int r) {
        const auto& all = ranges_of_process_[std::size_t(r)];
        return k < all.size() ? all[k] : element_range{};
      };
      long longest = 0;
      for (int r = 0; r < processes_; ++r) longest = std::max(longest, range_of(r).size());
      for (long done = 0; done < longest; done += part()) {
        const auto piece_of_range = [&](int r) {
          const element_range all = range_of(r);
          return element_range{std::min(all.end, all.begin + done), std::min(all.end, all.begin + done + part())};
        };
        const element_range mine = piece_of_range(rank_);
        std::copy_n(arena + mine.begin, mine.size(), on_the_way + rank_ * part());
        const auto bytes = [&](long elements) { return std::size_t(elements) * sizeof(T); };
        for (int r = 0; r < processes_; ++r) {
          if (r == rank_) continue;
          if (const long size = piece_of_range(r).size(); gets(rank_) && size > 0)
            c.receive(parts_, bytes(r * part()), bytes(size), r);
          if (gets(r) && mine.size() > 0) c.send(parts_, bytes(rank_ * part()), bytes(mine.size()), r);
        }
        c.wait(what);
        for (int r = 0; r < processes_; ++r)
          if (r != rank_ && gets(rank_))
            std::copy_n(on_the_way + r * part(), piece_of_range(r).size(), arena + piece_of_range(r).begin);
      }
    }
  }

  /// Completes arrays of norms, which have a number for each piece of the arena.
  void share_norms(double* numbers, int arrays) {
    auto& c = group_->processes();
    double* const on_the_way = reinterpret_cast<double*>(numbers_.data());
    const long stride = base::update_type::norm_count(trained.span()) / 3;
    const auto pieces = [&](const element_range& range) { return pieces_of(trained.span(), range); };
    const auto bytes = [](long n) { return std::size_t(n) * sizeof(double); };
    for (int a = 0; a < arrays; ++a) {
      double* const array = numbers + a * stride;
      for (const element_range& own : ranges_of_process_[std::size_t(rank_)])
        std::copy_n(array + pieces(own).begin, pieces(own).size(), on_the_way + pieces(own).begin);
      for (int r = 0; r < processes_; ++r) {
        if (r == rank_) continue;
        for (const element_range& its : ranges_of_process_[std::size_t(r)])
          c.receive(numbers_, bytes(pieces(its).begin), bytes(pieces(its).size()), r);
        for (const element_range& own : ranges_of_process_[std::size_t(rank_)])
          c.send(numbers_, bytes(pieces(own).begin), bytes(pieces(own).size()), r);
      }
      c.wait("norms");
      for (int r = 0; r < processes_; ++r)
        for (const element_range& its : ranges_of_process_[std::size_t(r)])
          if (r != rank_) std::copy_n(on_the_way + pieces(its).begin, pieces(its).size(), array + pieces(its).begin);
    }
  }
};

template <class Program, class Base, class Split, class Communicator>
  requires(device_of<Base>::is_host)
struct engine_for<Program, split_among<Base, Split, Communicator>> {
  using type = process_split_engine<Program, split_among<Base, Split, Communicator>>;
};

}  // namespace strata
