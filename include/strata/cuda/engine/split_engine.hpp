// The engine of a program that is split into stages whose places are GPUs. A place has the parameters, slots, gradients and
// activations of its stages only. The host enqueues the steps of all places in an order in which none waits for what has not
// been enqueued: what one GPU sends another is a copy between devices, and the receiver's queue waits for its event.
// needs: boost_context
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <strata/concepts/engine.hpp>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/engine/engine_device.hpp>
#include <strata/cuda/engine/epoch_totals.hpp>
#include <strata/cuda/engine/host_copy.hpp>
#include <strata/cuda/engine/memory_need.hpp>
#include <strata/cuda/engine/metrics.hpp>
#include <strata/cuda/engine/options.hpp>
#include <strata/cuda/engine/prepared_kernels.hpp>
#include <strata/cuda/engine/update.hpp>
#include <strata/cuda/kernels/kernels.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <strata/program/split.hpp>
#include <strata/program/stage_pass.hpp>
#include <utility>
#include <vector>

namespace strata {

namespace machine {
/// Numbers in another order.
struct reorder {
  const double* from;
  const int* places;  // of each number
  double* to;
  constexpr void operator()(long i) const { to[i] = from[places[i]]; }
};
/// The sums of some outputs, which another device has computed, of all leaves: those in columns where `of_column` is `which`.
struct take_columns {
  const double* from;
  const int* of_column;
  int which;
  long size;
  double* to;
  constexpr void operator()(long i) const {
    if (of_column[i % size] == which) to[i] = from[i];
  }
};
}  // namespace machine

/// A micro-batch is one or several whole leaves, so a place computes it in one call of each kernel, and the bits are those of one
/// GPU. If the last batch of an epoch has fewer leaves than there are micro-batches, each leaf is one.
template <class Program, class Backend>
class cuda_split_engine {
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  using sums_of_leaf = leaf_sums<Program, Backend>;
  using split = typename Backend::split;
  static constexpr const auto& table = split::table;
  using table_type = std::remove_cvref_t<decltype(table)>;
  static constexpr int places = table_type::places, stage_count = table_type::stages, micro_batches = table_type::micro_batches;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  static constexpr const auto& ends = ends_of_program<Program>;
  static constexpr const auto& training_stages = stage_plan_of<Program, Backend>;
  static constexpr auto trained = trained_ranges(layout);
  static constexpr auto arenas = arenas_of_places<Program, Backend>;
  static constexpr purpose inferring = infers_differently<Program> ? purpose::inference : purpose::training;
  static_assert(plan.segment_count == 1 && plan.derived == 0);
  static_assert(table.is_complete() && detail::ends(training_stages, stage_steps_of<Program, Backend>, table) &&
                    detail::ends(stage_plan_of<Program, Backend, inferring>, stage_steps_of<Program, Backend, inferring>, table,
                                 false),
                "places would wait for each other for ever");
  template <class V>
  using buffer = cuda_device::buffer<V>;
  using totals_grid = typename epoch_totals<Program>::grid;
  using stage_memory = detail::stage_memory<T, cuda_device>;

  /// Of each parameter that trains, in the order of the layout: its number if those of place 0 come first, and so on.
  struct parameter_order {
    int at[trained.count + 1] = {};
    int first[places + 1] = {};  // of each place
  };
  static constexpr parameter_order order = [] {
    parameter_order o;
    int count = 0;
    for (int p = 0; p < places; ++p) {
      o.first[p] = count;
      for (int k = 0, s = 0; s < layout.count; ++s)
        if (layout.slots[s].what.trainable) {
          if (arenas.place[s] == p) o.at[k] = count++;
          ++k;
        }
    }
    o.first[places] = count;
    return o;
  }();
  static constexpr int place_of_group(int g) { return table_type::place_of(training_stages.stage_of[g]); }
  static constexpr int place_of_output(int k) { return place_of_group(plan.output_group[k]); }
  static constexpr int home_number = place_of_output(0);
  static constexpr bool has_outputs_at_several_places = [] {
    for (int k = 0; k < plan.output_count; ++k)
      if (place_of_output(k) != home_number) return true;
    return false;
  }();

  struct micro_batch {
    int leaf, leaves;  // the first one, how many
    int first, count;  // samples
  };

  /// One GPU: it computes some layers for all leaves.
  struct place : engine_device<Program, Backend> {
    using base = engine_device<Program, Backend>;
    using base::number, base::on, base::queue;

    std::vector<parameter_range> ranges;  // of its trained parameters, in its arena
    buffer<T> scratch;
    buffer<double> foreign;  // copies of numbers of all places, then the same in the order of the layout
    buffer<int> order_of_parameters;
    std::vector<T*> leaf_gradients;

    place(int number, int index, int slot_count)
        : base(number, index, arenas.size[number], arenas.trainable[number] * slot_count, own_ranges(number, trained),
               own_begins(number)),
          ranges(own_ranges(number, trained)),
          foreign(on.template allocate<double>(2 * std::size_t(trained.count))),
          order_of_parameters(on.template allocate<int>(std::size_t(trained.count))) {
      this->write(std::span(order.at).first(std::size_t(trained.count)), order_of_parameters.data());
    }
    long stride() const { return arenas.trainable[number]; }
    double* numbers_of_all() const { return foreign.data() + trained.count; }
  };

  leaf_policy policy_;
  leaf_schedule<T> leaves_;
  int slot_count_;
  host_copy sums_, penalties_;
  epoch_totals<Program> totals_;            // on the GPU of the first output
  device_group<place> places_;              // after the arrays that their queues may still write to
  stage_memory memory_[2][stage_count];     // of inference, of training
  buffer<double> sums_of_others_;           // on the GPU of the first output
  buffer<int> place_of_column_;             // of the sums of a leaf
  std::vector<micro_batch> micro_batches_;  // of the step at hand
  std::vector<machine::event> sent_events_, released_events_;
  int sent_[training_stages.transfer_count + 1] = {}, released_[stage_count] = {};  // what has been enqueued

  prepared_kernels prepared_;

  kernel_observer* observer_ = nullptr;
  std::vector<trained_group> groups_;  // empty: no layer was ever frozen at run time

 public:
  using program = Program;
  using backend = Backend;
  using device = cuda_device;
  using value_type = T;
  using options = cuda_options;

  /// options.devices: one for each place. Throws strata::error if these are not as many as places, or if there is no such device.
  cuda_split_engine(const cuda_options& o, leaf_policy policy, int slots)
      : policy_(policy), leaves_(policy, ends), slot_count_(slots), penalties_(std::size_t(trained.count)) {
    if (int(o.devices.size()) != places)
      throw_error({places, " ", split::place, places == 1 ? "" : "s", " of a network need as many GPUs, but there ",
                   o.devices.size() == 1 ? "is " : "are ", o.devices.size()});
    if (o.sums_by_nccl) throw_error("fastest{} adds gradients of several GPUs, but each layer is on one GPU here");
    for (int p = 0; p < places; ++p)
      detail::or_name_need([&] { places_.add(p, o.devices[std::size_t(p)], slots); },
                           [&](int device) { return ". " + own_arenas(p, device); });
    places_.enable_peer_access();
    totals_.allocate(home().on);
    if constexpr (has_outputs_at_several_places) tell_places_of_columns();
    sent_events_.resize(std::size_t(training_stages.transfer_count) * ring);
    released_events_.resize(std::size_t(stage_count) * ring);
  }

  void observe(kernel_observer* observer) {
    if (observer && observer->reads_gradients())
      throw_error("an observer that reads numbers of layers, such as check_numerics, needs all layers on one GPU, or on the CPU");
    observer_ = observer;
  }
  void freeze(std::span<const bool> slots) {
    const auto ranges = trained_ranges(layout, slots);
    groups_ = trained_groups(plan, layout_of<typename Program::items>, slots);
    prepared_.clear();  // other gradients are wanted
    for (place& p : places_) {
      p.ranges = own_ranges(p.number, ranges);
      p.update.set_ranges(p.ranges);
      p.clear(p.gradients);  // no kernel stores those of frozen parameters
    }
  }

  const cuda_device& on() const { return home().on; }
  machine::queue queue() const { return home().queue; }

  void read_parameters(std::span<T> to) const {
    for (int s = 0; s < layout.count; ++s)
      owner(s).read(owner(s).weights.data() + arenas.offset[s], part(to, layout.slots[s].offset, s));
    places_.wait();
  }
  void write_parameters(std::span<const T> from) {
    for (int s = 0; s < layout.count; ++s)
      owner(s).write(part(from, layout.slots[s].offset, s), owner(s).weights.data() + arenas.offset[s]);
  }
  void read_slots(std::span<T> to) const {
    for (int k = 0; k < slot_count_; ++k)
      for (int s = 0; s < layout.count; ++s)
        if (layout.slots[s].what.trainable) owner(s).read(slot(k, s), part(to, k * layout.trainable + layout.slots[s].offset, s));
    places_.wait();
  }
  void write_slots(std::span<const T> from) {
    for (int k = 0; k < slot_count_; ++k)
      for (int s = 0; s < layout.count; ++s)
        if (layout.slots[s].what.trainable)
          owner(s).write(part(from, k * layout.trainable + layout.slots[s].offset, s), slot(k, s));
  }
  /// to: the mean of each element, at the places of the layout.
  void read_gradient(const global_gradient<T, cuda_device>& from, std::span<T> to) const {
    using host = host_arithmetic<typename host_backend_of<Backend>::type>;
    for (const place& p : places_) {
      const auto size = std::size_t(p.stride());
      std::vector<arena<T>> copies;
      std::vector<const T*> at;
      for (int l = 0; l < from.count(); ++l) {
        copies.emplace_back(size);
        p.read(p.leaf_gradients[std::size_t(l)], copies.back().span());
        at.push_back(copies.back().data());
      }
      p.wait();
      arena<T> sum(size);
      host::sum_leaves(sum.data(), at.data(), from.count(), 0, long(size));
      for (int s = 0; s < layout.count; ++s)
        if (layout.slots[s].what.trainable && arenas.place[s] == p.number)
          for (long i = 0; i < padded_size(s); ++i)
            to[std::size_t(layout.slots[s].offset + i)] = from.mean().of(sum.data()[arenas.offset[s] + i]).value();
    }
  }

  /// Throws strata::error if a batch has fewer leaves than it has micro-batches, or if several processes divide it.
  int prepare(int batch, purpose why, int processes) {
    if (processes > 1) throw_error("layers on several GPUs: one process has the whole batch");
    if (why == purpose::training && batch > leaves_.prepared_for(why)) refuse_few_leaves(batch);
    const batch_division most = leaves_.grow(batch, why);
    if (most.leaves == 0) return 0;
    try {
      detail::or_name_need([&] { allocate(most.leaves, batch, why); }, [&](int) { return needed(most.leaves, batch, why); });
    } catch (...) {
      leaves_.forget();
      throw;
    }
    return most.leaves;
  }
  void share_among(int) {}

  /// Throws strata::error for a batch without samples.
  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    if (batch.count < 1) throw_error({"a batch of ", batch.count, " samples: a step needs one at least"});
    leaves_.begin(batch, rank, processes);
    sums_.outdate();
    const bool trains = why == purpose::training;
    cut();
    const int capacity = int(leaves_.first_of(1));
    for (place& p : places_) {
      p.context = {p.weights.data(), nullptr, nullptr, double(batch.count), random, p.queue};
      p.context.leaves = {0, capacity, p.stride(), long(sums_of_leaf::size)};
      p.use_batch(p.batches.fill(read_by(p.number, leaves_.batch())));
      p.bring_random_numbers();
      if (!trains) continue;
      p.context.observer = observer_, p.context.on = &p.on;
      p.context.trained = groups_.empty() ? nullptr : groups_.data();
      p.leaf_gradients.clear();
      for (int l = 0; l < leaves_.leaves(); ++l) p.leaf_gradients.push_back(p.gradients.data() + l * p.stride());
    }
    if (trains) {
      leaves_.gradient_places().grow(home().leaf_gradients.size());
      std::ranges::copy(home().leaf_gradients, leaves_.gradient_places().data());
    }
    trains ? prepare_kernels<purpose::training, true>() : prepare_kernels<inferring, false>();
    if (layout.has_regularizers()) penalties_.outdate();
  }
  int leaves() const { return leaves_.leaves(); }

  void forward(int) {}
  template <class Done>
  void forward_backward(Done&& done) {
    run<purpose::training, true>(true, {});
    for (int g = plan.group_count - 1; g >= 0; --g)
      for (int l = 0; l < leaves_.leaves() && plan.groups[g].trains; ++l) done(g);
  }
  void backward(int) {}

  double* sums(int l) {
    const auto copy = [&](std::span<double> to) {
      join_sums();
      home().read(home().sums.data(), to.first(std::size_t(leaves_.leaves()) * sums_of_leaf::size));
      home().wait();
    };
    return sums_.get(copy).data() + std::size_t(l) * sums_of_leaf::size;
  }
  void set_statistics(int, std::span<const double>) {}
  /// Those of the place with the first output; other places have their own for the same leaves.
  leaf_gradients<T, cuda_device> gradients() const { return leaves_.template gradients<cuda_device>(); }
  std::span<const double> penalties() {
    return penalties_.get([&](std::span<double> to) {
      home().read(penalties_of_all(), to);
      home().wait();
    });
  }

  void update(const optimizer_type& rules, long step, double rate, const global_gradient<T, cuda_device>& gradient) {
    const update_numbers<T> now = update_numbers<T>::of(rules, step, rate);
    for (place& p : places_) p.update.tell_numbers(now);
    update_places(rules, gradient, [](const place& p) { return p.update.told_numbers(); }, totals_grid{});
  }
  void update_state() {}

  /// Whether train_at_once can compute the step: unless an observer wants to see each kernel.
  bool updates_at_once(const optimizer_type&) const { return !observer_; }
  /// The host waits for nothing but the copy of the batch before the last.
  template <class Reduction>
  void train_at_once(const optimizer_type& rules, long step, double rate, Reduction reduction) {
    const auto gradient = reduction.reduce(gradients(), leaves_.batch().count);
    const update_numbers<T> now = update_numbers<T>::of(rules, step, rate);
    for (place& p : places_) p.batches.numbers().update = now;
    run<purpose::training, true>(true, {});
    join_sums();
    const totals_grid totals =
        totals_.add({home().sums.data() + sums_of_leaf::statistics, long(sums_of_leaf::size), leaves_.leaves()},
                    layout.has_regularizers() ? penalties_of_all() : nullptr);
    machine::launch(home().queue, totals.blocks, totals.code);
    update_places(rules, gradient, [](const place& p) { return &p.batches.numbers_on_device()->update; }, totals_grid{});
  }
  /// See cuda_engine.
  void begin_totals(const metric_sums<Program>& so_far) { totals_.begin(home(), so_far); }
  totals_of_steps<Program> totals() {
    return totals_.read(home(), [&] { home().wait(); });
  }

  void measure() { run<inferring, false>(true, {}); }
  void predict(const output_rows<T>& out) {
    run<inferring, false>(false, out);
    places_.wait();
  }

 private:
  static constexpr int ring = [] {
    int most = 1;
    for (int s = 0; s < stage_count; ++s) most = std::max(most, table.in_flight(s));
    return most + 1;
  }();

  place& home() { return places_[home_number]; }
  const place& home() const { return places_[home_number]; }
  place& place_of(int stage) { return places_[table_type::place_of(stage)]; }
  static long padded_size(int s) { return detail::aligned_elements(layout.slots[s].what.extents.size()); }
  /// Where the trained parameters of a place begin in the arena of the whole network.
  static std::vector<long> own_begins(int number) {
    std::vector<long> own;
    for (int s = 0; s < layout.count; ++s)
      if (layout.slots[s].what.trainable && arenas.place[s] == number) own.push_back(layout.slots[s].offset);
    return own;
  }
  static std::vector<parameter_range> own_ranges(int number, const auto& all) {
    std::vector<parameter_range> own;
    for (int k = 0, s = 0; s < layout.count; ++s) {
      if (!layout.slots[s].what.trainable) continue;
      parameter_range it = all.ranges[k++];
      if (arenas.place[s] != number) continue;
      it.end += arenas.offset[s] - it.begin;
      it.begin = arenas.offset[s];
      own.push_back(it);
    }
    return own;
  }

  // Of slot s of the layout: a parameter.
  const place& owner(int s) const { return places_[arenas.place[s]]; }
  T* slot(int k, int s) const { return owner(s).slots.data() + k * owner(s).stride() + arenas.offset[s]; }
  template <class V>
  static std::span<V> part(std::span<V> whole, long begin, int s) {
    return whole.subspan(std::size_t(begin), std::size_t(padded_size(s)));
  }

  void refuse_few_leaves(int batch) const {
    const auto occupied = [&](int capacity) { return (batch + capacity - 1) / capacity; };
    const int count = occupied(policy_(batch).capacity);
    if (count >= micro_batches) return;
    if (batch < micro_batches)
      throw_error({"a batch of ", batch, " samples cannot be cut into ", micro_batches, " micro-batches: it needs at least ",
                   micro_batches, " samples"});
    int leaves = micro_batches;  // a batch that they do not divide may fill fewer of them
    while (occupied((batch + leaves - 1) / leaves) < micro_batches) ++leaves;
    throw_error({"a batch of ", batch, " samples has ", count, " leaves, which cannot be cut into ", micro_batches,
                 " micro-batches: on GPUs each is one or several whole leaves. Write `cuda_options options; options.leaves = ",
                 leaves, ";` and `gpu_pipeline<...>{gpus(", places, "), options}`"});
  }
  /// The most leaves of a micro-batch.
  static int leaves_of_micro_batch(int occupied) {
    const int count = std::min(micro_batches, occupied);
    return (occupied + count - 1) / count;
  }
  /// The most samples of a micro-batch, for batches of up to `batch`.
  int samples_of_micro_batch(int batch) const {
    int samples = 0;
    for (int count = 1; count <= batch; ++count) {
      const auto [n, capacity] = policy_(count);
      samples = std::max(samples, std::min(count, leaves_of_micro_batch((count + capacity - 1) / capacity) * capacity));
    }
    return samples;
  }
  /// In words: the arenas of a place.
  std::string own_arenas(int number, int index) const {
    return detail::text_of({"gpu(", index, ") needs ", long(sizeof(T)) * arenas.size[number], " bytes for weights, ",
                            long(sizeof(T)) * arenas.trainable[number] * slot_count_, " for slots of the optimizer"});
  }
  /// In words: what each place needs.
  [[gnu::cold]] std::string needed(int leaves, int batch, purpose why) const {
    const bool trains = why == purpose::training;
    const int samples = samples_of_micro_batch(batch);
    const auto scratch_of = [&](const auto& of) { return long(of.scratch) + long(samples) * long(of.scratch_per_sample); };
    const long scratch = trains ? scratch_of(plan) : scratch_of(plan_of<Program, Backend, inferring>);
    std::string all = detail::text_of({trains ? ". To train with batches of " : ". For batches of ", batch});
    for (const place& p : places_) {
      long activations = scratch;
      const auto add_stages = [&](const auto& stages) {
        for (int s = 0; s < stage_count; ++s)
          if (table_type::place_of(s) == p.number)
            activations += stage_memory::elements(stages.own[s], stages.received[s], trains ? table.in_flight(s) : 1, samples);
      };
      trains ? add_stages(training_stages) : add_stages(stage_plan_of<Program, Backend, inferring>);
      all += (p.number == 0 ? ", " : "; ") + own_arenas(p.number, p.on.index()) +
             detail::text_of({", ", trains ? leaves * p.stride() * long(sizeof(T)) : 0L, " for gradients of ",
                              trains ? leaves : 0, " leaves, ", activations * long(sizeof(T)), " for activations and ",
                              p.batches.bytes(batch), " for the batch"});
    }
    return all;
  }
  void allocate(int leaves, int batch, purpose why) {
    const bool trains = why == purpose::training;
    const int samples = samples_of_micro_batch(batch);
    sums_.grow(std::size_t(leaves) * sums_of_leaf::size);
    for (place& p : places_) {
      p.batches.grow(batch);
      p.grow(p.sums, std::size_t(leaves) * sums_of_leaf::size);
      const auto scratch_of = [&](const auto& of) {
        return std::size_t(of.scratch) + std::size_t(samples) * std::size_t(of.scratch_per_sample);
      };
      p.grow(p.scratch, trains ? scratch_of(plan) : scratch_of(plan_of<Program, Backend, inferring>));
      if (trains) p.grow(p.gradients, std::size_t(leaves) * std::size_t(p.stride()));
    }
    if constexpr (has_outputs_at_several_places) home().grow(sums_of_others_, std::size_t(leaves) * sums_of_leaf::size);
    const auto prepare_stages = [&](const auto& stages) {
      for (int s = 0; s < stage_count; ++s)
        memory_[trains][s].prepare(place_of(s).on, stages.own[s], stages.received[s], trains ? table.in_flight(s) : 1, samples);
    };
    trains ? prepare_stages(training_stages) : prepare_stages(stage_plan_of<Program, Backend, inferring>);
    prepared_.clear();
  }

  /// The parts of a batch that a place reads.
  static samples<T> read_by(int number, const samples<T>& batch) {
    samples<T> own;
    own.count = batch.count;
    for (int g = 0; g < plan.group_count; ++g) {
      if (place_of_group(g) != number) continue;
      for (int k = 0; k < plan.groups[g].arity; ++k)
        if (const int from = plan.groups[g].input[k]; from < 0) own.inputs[-1 - from] = batch.inputs[-1 - from];
      if (const int k = plan.groups[g].number_of_output; k >= 0) own.truths[k] = batch.truths[k];
    }
    return own;
  }
  /// Cuts the batch of this step into micro-batches. Leaves without samples belong to the last one.
  void cut() {
    micro_batches_.clear();
    const int occupied = leaves_.occupied(), count = std::min(micro_batches, occupied), samples = leaves_.batch().count;
    const int capacity = int(leaves_.first_of(1));
    for (int m = 0; m < count; ++m) {
      const leaf_range share = share_of(occupied, m, count);
      const int end = m + 1 == count ? leaves_.leaves() : share.end, first = share.begin * capacity;
      micro_batches_.push_back({share.begin, end - share.begin, first, std::min(samples, share.end * capacity) - first});
    }
  }

  /// Calls f(pass, context) of a stage and a micro-batch.
  template <purpose Why, bool Trains, class F>
  void with_pass(int stage, int number, F&& f) {
    place& p = place_of(stage);
    const micro_batch& m = micro_batches_[std::size_t(number)];
    const samples<T> some = p.batch.rows(m.first, m.count, ends);
    step_context<T, cuda_device> context = p.context;
    context.leaves.count = m.leaves;
    context.prepared = prepared_.find(size_of<Trains>(m));
    const sums_of_leaf sums{Trains ? p.gradients.data() + m.leaf * p.stride() : nullptr,
                            p.sums.data() + std::size_t(m.leaf) * sums_of_leaf::size};
    f(detail::stage_pass<Program, Backend, Why>(context, memory_[Trains][stage], p.scratch.data(), sums, some, m.first, number));
  }
  template <bool Trains>
  prepared_kernels::pass_size size_of(const micro_batch& m) const {
    return {Trains ? purpose::training : purpose::inference, m.count, m.leaves, int(leaves_.first_of(1))};
  }
  template <purpose Why, bool Trains>
  void prepare_kernels() {
    if constexpr (detail::stage_pass<Program, Backend, Why>::prepares) {
      constexpr const auto& of = plan_of<Program, Backend, Why>;
      for (std::size_t i = 0; i < micro_batches_.size(); ++i) {
        const micro_batch& m = micro_batches_[i];
        if (prepared_.find(size_of<Trains>(m))) continue;
        prepared_kernels::groups groups(std::size_t(of.group_count));
        for (int g = 0; g < of.group_count; ++g)
          with_pass<Why, Trains>(stage_plan_of<Program, Backend, Why>.stage_of[g], int(i),
                                 [&](auto&& pass) { groups[std::size_t(g)] = pass.prepare(g, Trains); });
        prepared_.add(size_of<Trains>(m), std::move(groups));
      }
    }
  }

  /// Enqueues the turns of all places. is_measured: there are labels; else predictions are copied to `out`.
  template <purpose Why, bool Trains>
  void run(bool is_measured, const output_rows<T>& out) {
    sums_.outdate();
    places_.wait_for_each_other();  // a place may still read what was sent to it in the step before
    if (is_measured) penalize();
    std::ranges::fill(sent_, 0);
    std::ranges::fill(released_, 0);
    for (place& p : places_) p.batches.send();
    position at[places];
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int p = 0; p < places; ++p) goes_on = advance<Why, Trains>(p, at[p], is_measured, out) || goes_on;
    }
    for (int p = 0; p < places; ++p)
      if (at[p].next_turn != table_type::turns_of_place)
        throw_error({split::place, " ", p, " of ", places, " waits for what no other one sends: its step is not complete"});
  }
  struct position {
    int next_turn = 0;
    std::size_t next_step = 0;
  };
  /// Enqueues the next steps of a place, up to one that needs what another place has not enqueued. Returns whether it did any.
  template <purpose Why, bool Trains>
  bool advance(int number, position& at, bool is_measured, const output_rows<T>& out) {
    bool did_any = false;
    for (; at.next_turn < table_type::turns_of_place; ++at.next_turn, at.next_step = 0) {
      const turn& now = table.turns[std::size_t(number)][std::size_t(at.next_turn)];
      if ((now.backward && !Trains) || now.micro_batch >= int(micro_batches_.size())) continue;
      const auto steps = stage_steps_of<Program, Backend, Why>.of(now.backward, now.stage);
      for (; at.next_step < steps.size(); ++at.next_step, did_any = true)
        if (!enqueue<Why, Trains>(now, steps[at.next_step], is_measured, out)) return did_any;
      if (now.backward == Trains) release<Trains>(now);
    }
    return did_any;
  }
  template <bool Trains>
  static constexpr int in_flight(int stage) {
    return Trains ? table.in_flight(stage) : 1;
  }
  template <purpose Why, bool Trains>
  bool enqueue(const turn& now, const detail::stage_step& step, bool is_measured, const output_rows<T>& out) {
    const int number = now.micro_batch;
    if (step.computes()) {
      with_pass<Why, Trains>(now.stage, number, [&](auto&& pass) {
        if constexpr (Trains)
          pass.compute(step, false);
        else
          pass.infer(step, is_measured);
        if (!Trains && !is_measured) copy_predictions<Why>(step.which, number, pass, out);
      });
      return true;
    }
    const stage_transfer& it = stage_plan_of<Program, Backend, Why>.transfers[step.which];
    place &from = place_of(it.from), &to = place_of(it.to);
    const auto event_of = [](std::vector<machine::event>& all, int which, int i) -> machine::event& {
      return all[std::size_t(which) * ring + std::size_t(i) % ring];
    };
    if (step.does == detail::stage_action::wait) {
      if (sent_[step.which] <= number) return false;
      if (from.number != to.number) event_of(sent_events_, step.which, number).hold(to.queue);
      return true;
    }
    const int first_in_flight = number - in_flight<Trains>(it.to);  // the receiving stage has to be done with those before
    if (released_[it.to] < first_in_flight) return false;
    if (first_in_flight > 0 && from.number != to.number) event_of(released_events_, it.to, first_in_flight - 1).hold(from.queue);
    const bool is_needed = !it.of_gradient || groups_.empty() || groups_[std::size_t(it.group)].trains;
    if (is_needed)
      machine::copy_between(from.queue, memory_[Trains][it.to].at(it.target, number),
                            memory_[Trains][it.from].at(it.source, number),
                            std::size_t(micro_batches_[std::size_t(number)].count) * std::size_t(it.size) * sizeof(T));
    if (from.number != to.number) event_of(sent_events_, step.which, number).record(from.queue);
    ++sent_[step.which];
    return true;
  }
  template <bool Trains>
  void release(const turn& now) {
    released_events_[std::size_t(now.stage) * ring + std::size_t(now.micro_batch) % ring].record(place_of(now.stage).queue);
    ++released_[now.stage];
  }
  template <purpose Why>
  void copy_predictions(int g, int number, const auto& pass, const output_rows<T>& out) {
    const micro_batch& m = micro_batches_[std::size_t(number)];
    for (int k = 0; k < plan.output_count; ++k) {
      if (plan_of<Program, Backend, Why>.output_group[k] != g || !out.at[k]) continue;
      places_[place_of_output(k)].read(pass.predictions(k),
                                       {out.at[k] + long{m.first} * ends.outputs[k], std::size_t(m.count * ends.outputs[k])});
    }
  }

  void penalize() {
    if constexpr (layout.has_regularizers())
      for (place& p : places_) p.update.penalize(p.weights.data());
  }
  /// The numbers of all parameters in the order of the layout, on the GPU of a place. numbers_of: those of a place.
  template <class NumbersOf>
  const double* collect(const place& to, NumbersOf&& numbers_of) const {
    for (const place& p : places_)
      if (const int first = order.first[p.number], count = order.first[p.number + 1] - first; count > 0)
        machine::copy_between(to.queue, to.foreign.data() + first, numbers_of(p), std::size_t(count) * sizeof(double));
    machine::for_each_index(to.queue, trained.count,
                            machine::reorder{to.foreign.data(), to.order_of_parameters.data(), to.numbers_of_all()});
    return to.numbers_of_all();
  }
  /// On the GPU with the first output.
  const double* penalties_of_all() const {
    places_.wait_for_each_other();
    return collect(home(), [](const place& p) { return p.update.penalties(); });
  }

  /// Of several outputs some may be computed elsewhere: brings all sums to the place of the first one.
  void join_sums() {
    if constexpr (has_outputs_at_several_places) {
      const std::size_t size = std::size_t(leaves_.leaves()) * sums_of_leaf::size;
      places_.wait_for_each_other();
      for (int p = 0; p < places; ++p) {
        if (p == home_number) continue;
        machine::copy_between(home().queue, sums_of_others_.data(), places_[p].sums.data(), size * sizeof(double));
        machine::for_each_index(home().queue, long(size),
                                machine::take_columns{sums_of_others_.data(), place_of_column_.data(), p,
                                                      long(sums_of_leaf::size), home().sums.data()});
      }
    }
  }
  void tell_places_of_columns() {
    std::vector<int> of(sums_of_leaf::size, home_number);
    int metrics = int(sums_of_leaf::statistics) + 2 * plan.output_count;
    [&]<class... Output>(type_list<Output...>) {
      int k = 0;
      const auto next = [&]<class One>(std::type_identity<One>) {
        for (int i = 0; i < 2; ++i) of[sums_of_leaf::statistics + std::size_t(2 * k + i)] = place_of_output(k);
        const int size = 2 * int(detail::pairs_of_metrics<Program>(std::size_t(k), typename One::metrics{}));
        for (int i = 0; i < size; ++i) of[std::size_t(metrics++)] = place_of_output(k);
        ++k;
      };
      (next(std::type_identity<Output>{}), ...);
    }(typename Program::outputs{});
    place_of_column_ = home().on.template allocate<int>(of.size());
    home().write(of, place_of_column_.data());
  }

  /// Each place updates its parameters. Norms of the whole gradient are those of the parameters of all places.
  template <class Now>
  void update_places(const optimizer_type& rules, const global_gradient<T, cuda_device>& gradient, Now&& now,
                     const totals_grid& also) {
    for (place& p : places_) p.update.tell_arrays(p.leaf_gradients);
    const bool takes_global_norm = rules.global_clipnorm > 0;
    if (takes_global_norm) {
      for (place& p : places_) p.update.take_norms(rules, now(p), gradient.at(p.leaf_gradients.data()), p.weights.data());
      places_.wait_for_each_other();
    }
    for (place& p : places_) {
      const double* norms = nullptr;
      if (takes_global_norm) norms = collect(p, [](const place& of) { return of.update.norms(); });
      p.update.run(rules, now(p), gradient.at(p.leaf_gradients.data()), p.weights.data(), p.slots.data(), p.stride(), also,
                   {norms, trained.count});
    }
  }
};

template <class Split>
struct engine_options<split_backend<cuda, Split>> {
  using type = cuda_options;
};
template <class Program, class Split>
struct engine_for<Program, split_backend<cuda, Split>> {
  using type = cuda_split_engine<Program, split_backend<cuda, Split>>;
};

}  // namespace strata
