// The engine of one of the ranks that divide layers.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <strata/cpu/engine/divided_norms.hpp>
#include <strata/cpu/engine/engine.hpp>
#include <strata/cpu/kernels/divided.hpp>
#include <strata/cpu/kernels/divided_loss.hpp>
#include <strata/kernel/rank_exchange.hpp>
#include <strata/network/rank_messages.hpp>
#include <strata/program/print_divisions.hpp>
#include <strata/program/tensor_backend.hpp>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
/// A copy of a part of the rows of a kernel whose columns are divided among ranks. Both are (outer, rows, columns).
struct copied_kernel {
  int from = 0, to = 0;  // slots of the layout
  int outer = 1, rows = 0, own_rows = 0, columns = 0, own_columns = 0;
};
template <class Items>
constexpr int count_copies() {
  constexpr const auto& l = layout_of<Items>;
  int count = 0;
  for (int s = 0; s < l.count; ++s)
    if (const auto shard_of = divisions_of<Items>[l.slots[s].node].shard_of)
      count += shard_of(l.slots[s].index, l.slots[s].what.extents).is_copy;
  return count;
}
template <class Items>
inline constexpr auto copies_of = [] {
  constexpr const auto& l = layout_of<Items>;
  std::array<copied_kernel, std::size_t(count_copies<Items>()) + 1> all{};
  std::size_t count = 0;
  for (int s = 0; s < l.count; ++s) {
    const auto shard_of = divisions_of<Items>[l.slots[s].node].shard_of;
    if (!shard_of || !shard_of(l.slots[s].index, l.slots[s].what.extents).is_copy) continue;
    const int kernel = s - l.slots[s].index;
    const shape own = l.slots[kernel].what.extents, copy = l.slots[s].what.extents;
    const int rank = own.rank();
    copied_kernel& c = all[count++];
    c = {.from = kernel, .to = s};
    c.rows = own[rank - 2], c.own_rows = copy[rank - 2], c.columns = copy[rank - 1], c.own_columns = own[rank - 1];
    c.outer = own.size() / (c.rows * c.own_columns);
  }
  return all;
}();
}  // namespace detail

namespace core {
/// What the engine of a rank adds to Engine, which computes the rank's part of the layers: after an update, and before any other
/// computation, ranks send each other the copies of parts of kernels. After take_gradient_norms the update itself sends nothing
/// unless the optimizer needs norms of directions, so all remaining ranks can complete it even if one is lost. Penalties of
/// divided parameters are added up in the order of ranks. Engine has most_samples(), the largest number of samples that go
/// through a layer together.
template <class Program, class Engine>
class engine_of_rank : public Engine {
 public:
  static constexpr engine_traits traits{.freezes = true, .has_some_layers = Engine::traits.has_some_layers};

 protected:
  using base = Engine;
  using base::layout;
  using typename base::T, typename base::update_type;
  using items = typename Program::items;
  static constexpr int ranks = Program::network::ranks;
  static constexpr const auto& copies = detail::copies_of<items>;

  std::vector<rank_exchange<T>*> exchanges_;  // of each place of this process
  rank_exchange<T>* exchange_;                // while no layer is computed
  bool has_old_copies_ = true;
  divided_norms<T, typename Program::network> whole_norms_{exchange_};

  /// exchanges: they outlive the engine.
  engine_of_rank(const typename Engine::options& how, leaf_policy policy, int slots, std::vector<rank_exchange<T>*> exchanges)
      : base(how, policy, slots), exchanges_(std::move(exchanges)), exchange_(exchanges_.front()) {
    exchange_->reserve(most_sent(0));
  }

 public:
  /// Elements that ranks send each other for a micro-batch of so many samples; and at most, also between steps.
  static constexpr long sent_in_layers(int samples) { return samples * detail::sent_of_a_sample<items> + 16 * ranks; }
  static constexpr long most_sent(int samples) {
    long most = std::max(long(base::trained.count) * long(sizeof(double) / sizeof(T)), sent_in_layers(samples));
    for (const auto& c : copies) most = std::max(most, long(ranks) * c.own_columns);
    return std::max({most, detail::elements_of_copies, detail::elements_of_norms(ranks)});
  }
  static constexpr void add_memory(process_memory& to, const sizes_of_process& how) {
    base::add_memory(to, how);
    to.messages += detail::elements_of_norms(ranks) * long(sizeof(T));
  }

  int prepare(int batch, purpose why, int processes) {
    const int leaves = base::prepare(batch, why, processes);
    make_room();
    return leaves;
  }
  void share_among(int processes) {
    base::share_among(processes);
    make_room();
  }

  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    if (has_old_copies_) share_copies();
    has_old_copies_ = false;
    base::begin(why, batch, random, rank, processes);
  }
  template <class Done>
  void forward_backward(Done&& done) {
    base::forward_backward(done);
    share_penalties();
  }

  void update(const typename Program::optimizer& rules, long step, double rate, const global_gradient<T, host_device>& gradient) {
    rules.template with_rule<T>(step, rate, [&]<class Rule>(const Rule& rule) {
      static_assert(!factored_rule<Rule, T>, "no rank has whole matrices");
      typename base::template slot_pointers<Rule::slots> slots(*this);
      const update_type all{
          rules, rate, base::ranges_.span(), base::weights_.data(), slots.at, base::norms_.data(), 0, base::has_gradient_norms_};
      if constexpr (parameterwise_rule<Rule, T>)
        run(all, rule, gradient);
      else
        run(all, detail::loops_of_rule<T>(rule), gradient);
    });
    base::has_gradient_norms_ = false;
    this->parameters_changed();
    has_old_copies_ = true;
  }
  /// The first part of the update: the rest sends nothing, unless the optimizer takes norms of directions.
  void take_gradient_norms(const typename Program::optimizer& rules, const global_gradient<T, host_device>& gradient) {
    const update_type all{rules, 0, base::ranges_.span(), base::weights_.data(), nullptr, base::norms_.data()};
    all.take_gradient_norms(parts_of(all, gradient), complete_norms_of(gradient));
    base::has_gradient_norms_ = true;
  }

 private:
  template <class Rule>
  [[gnu::noinline]] void run(const update_type& all, const Rule& rule, const global_gradient<T, host_device>& gradient) {
    all.run_parts(rule, parts_of(all, gradient), complete_norms_of(gradient));
  }
  /// in_parts of weight_update::run_parts.
  auto parts_of(const update_type& all, const global_gradient<T, host_device>& gradient) {
    return [&](auto&& f) {
      for_slices(this->team(), {0, layout.trainable}, [&](long begin, long end) { f(all, gradient, begin, end); });
    };
  }
  auto complete_norms_of(const global_gradient<T, host_device>& gradient) {
    return [&](double* numbers, int arrays) { complete_norms(numbers, arrays, gradient); };
  }
  /// Reserves room for the elements that ranks send each other for a micro-batch.
  void make_room() {
    for (rank_exchange<T>* each : exchanges_) each->reserve(sent_in_layers(this->most_samples()));
  }

 protected:
  /// The norms of the gradient; or those of weights, then of directions, which have replaced the gradient.
  void complete_norms(double* numbers, int arrays, const global_gradient<T, host_device>& gradient) {
    const std::span<const parameter_range> parameters = this->ranges_.span();
    for (int k = 0; k < arrays; ++k)
      whole_norms_.complete(
          numbers + k * (update_type::norm_count(parameters) / 3),
          [&](int slot) -> const T* {
            const T* const weights = this->weights_of(slot);
            return weights && (k > 0 || arrays == 1) ? gradient.arrays()[0] + this->offset_in_gradient(slot) : weights;
          },
          parameters);
  }

  /// Gives each rank its rows of the kernel, with the columns of all ranks.
  void share_copies() {
    for (const detail::copied_kernel& c : copies) {
      if (c.rows == 0 || !this->weights_of(c.from)) continue;
      const int at_a_time =
          std::max(1, int(std::min(long(c.own_rows), detail::elements_of_copies / (long(ranks) * c.own_columns))));
      for (int o = 0; o < c.outer; ++o)
        for (int first = 0; first < c.own_rows; first += at_a_time)
          share_rows(c, o, first, std::min(at_a_time, c.own_rows - first));
    }
  }
  void share_rows(const detail::copied_kernel& c, int outer, int first, int count) {
    const T* const own = this->weights_of(c.from) + long(outer) * c.rows * c.own_columns;
    const long piece = long(count) * c.own_columns;
    for (int r = 0; r < ranks; ++r) {
      const int begin = std::min(c.rows, r * c.own_rows + first), end = std::min(c.rows, begin + count);
      T* const to = exchange_->own() + r * piece;
      std::copy_n(own + long(begin) * c.own_columns, long(end - begin) * c.own_columns, to);
      std::fill(to + long(end - begin) * c.own_columns, to + piece, T{});
    }
    const T* const parts = exchange_->swap(piece);
    detail::join_columns(parts, ranks, count, c.own_columns, c.columns,
                         this->weights_of(c.to) + (long(outer) * c.own_rows + first) * c.columns);
  }

  /// Adds up the penalties of the parts of each divided parameter.
  void share_penalties() {
    if constexpr (layout.has_regularizers()) {
      const std::span<double> own = this->penalties_.span();
      std::memcpy(exchange_->own(), own.data(), own.size_bytes());
      const T* const all = exchange_->gather(long(own.size_bytes() / sizeof(T)));
      for (std::size_t k = 0, slot = 0; slot < std::size_t(layout.count); ++slot) {
        const parameter_slot& it = layout.slots[slot];
        if (!it.what.trainable) continue;
        const auto shard_of = divisions_of<items>[it.node].shard_of;
        if (shard_of && shard_of(it.index, it.what.extents).axis >= 0) {
          own[k] = 0;
          for (std::size_t r = 0; r < std::size_t(ranks); ++r) {
            double its = 0;
            std::memcpy(&its, reinterpret_cast<const std::byte*>(all) + (r * own.size() + k) * sizeof its, sizeof its);
            own[k] += its;
          }
        }
        ++k;
      }
    }
  }
};

/// A rank is one thread. A leaf, or 256 samples of one, goes through the network at a time, because ranks wait for each other in
/// each divided layer.
template <class Program, class Base>
class tensor_engine : public engine_of_rank<Program, cpu_engine<Program, tensor_backend<Base>>> {
  using base = engine_of_rank<Program, cpu_engine<Program, tensor_backend<Base>>>;
  using base::context_, base::exchange_;
  using typename base::T;

 public:
  using options = tensor_options<T>;

  tensor_engine(const options& how, leaf_policy policy, int slots)
      : base(of_one_thread<compute_options>(how), policy, slots, how.ranks) {}

  static constexpr void add_memory(process_memory& to, const sizes_of_process& how) { base::add_memory(to, of_one_thread(how)); }
  static constexpr int most_samples_of(const sizes_of_process& how) {
    return base::training_plan::most_samples_of(how.most.capacity, of_one_thread(how).micro_batch);
  }

  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    base::begin(why, batch, random, rank, processes);
    context_.ranks = exchange_;
  }
  void measure() {
    base::measure();
    this->share_penalties();
  }

 private:
  template <class Options>
  static constexpr Options of_one_thread(Options how) {
    how.threads = 1;
    if (how.micro_batch <= 0) how.micro_batch = detail::samples_of_rank_at_a_time;
    return how;
  }
};

template <class Program, class Base>
  requires(device_of<Base>::is_host)
struct engine_for<Program, tensor_backend<Base>> {
  using type = tensor_engine<Program, Base>;
};
}  // namespace core

}  // namespace strata
