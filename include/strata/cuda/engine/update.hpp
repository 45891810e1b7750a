// The update after a step, on a GPU: leaf gradients are added in the tree over leaves, reduced and clipped, and the optimizer's
// rule is applied to each element of the arena. cpu/engine/weight_update.hpp has the same passes.
// needs: boost_context
#pragma once
#include <cmath>
#include <cstring>
#include <strata/concepts/optimizer.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/tree.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>
#include <utility>
#include <vector>

namespace strata {

/// What changes from step to step: the rule of an optimizer, and weight_decay times the learning rate. Kernels read it in memory
/// of the device, so that they can be launched again with other numbers.
template <class T>
struct update_numbers {
  alignas(16) std::byte rule[192];
  T weight_decay;

  template <class Optimizer>
  static update_numbers of(const Optimizer& rules, long step, double rate) {
    update_numbers now{};
    now.weight_decay = T(rules.weight_decay * rate);
    rules.template with_rule<T>(step, rate, [&]<class Rule>(const Rule& rule) {
      static_assert(std::is_trivially_copyable_v<Rule> && sizeof(Rule) <= sizeof now.rule, "a rule is a few numbers");
      std::memcpy(now.rule, &rule, sizeof rule);
    });
    return now;
  }
  template <class Rule>
  constexpr const Rule& rule_as() const {
    return *static_cast<const Rule*>(static_cast<const void*>(rule));
  }
};

namespace machine {

/// The trained parameters, in memory of the device.
struct device_ranges {
  const parameter_range* all;
  int count;

  struct place {
    int parameter;
    bool is_trained;  // neither padding nor frozen
  };
  constexpr place of(long i) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (all[middle].begin <= i)
        low = middle;
      else
        high = middle - 1;
    }
    return {low, i >= all[low].begin && i < all[low].begin + all[low].elements && !all[low].frozen};
  }
};

/// An element of the sum over arrays, in the binary tree over leaves.
template <class T>
struct tree_of_arrays {
  T* const* arrays;  // in memory of the device
  int count;

  constexpr T operator()(long i) const {
    return sum_over_leaves<T>(count, [&](int l) { return arrays[l][i]; });
  }
};

/// What is the same for all elements of an update.
template <class T>
struct update_terms {
  device_ranges ranges;
  tree_of_arrays<T> sum;
  sample_mean<T> mean;
  T *weights, *first_array;
  const double* factors;  // of clipping by norms, for each parameter; null: there is none
  const update_numbers<T>* now;
  T clip_value;
  bool has_penalties;

  constexpr gradient_modifiers<T> modifiers(int k) const {
    gradient_modifiers<T> m;
    m.clip_value = clip_value;
    if (has_penalties) m.l1 = T(ranges.all[k].regularizer.l1), m.l2 = T(ranges.all[k].regularizer.l2);
    if (factors) m.clip_factor = T(factors[k]);
    return m;
  }
  /// The gradient of element i of parameter k as the rule sees it.
  constexpr reduced_gradient<T> gradient(long i, int k) const {
    const gradient_modifiers<T> m = modifiers(k);
    const reduced_gradient<T> whole = mean.of(sum(i));
    return m.keep_gradient() ? whole : strata::detail::modified(whole, weights[i], m);
  }
  constexpr void decay(long i) const { weights[i] -= strata::detail::product(weights[i], now->weight_decay); }
};

template <class T, class Slots>
struct slots_of_element;
template <class T, int... Slot>
struct slots_of_element<T, std::integer_sequence<int, Slot...>> {
  T* slots;
  long stride;

  /// f(slot...)
  template <class F>
  constexpr auto operator()(long i, F&& f) const {
    return f(slots[Slot * stride + i]...);
  }
};
template <class T, class Rule>
using slots_of = slots_of_element<T, strata::detail::slots_of_rule<Rule>>;

/// Stores the gradient as the rule sees it in the first array: for its norms, and for a factored_rule.
template <class T>
struct store_mean {
  update_terms<T> of;
  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    of.first_array[i] = is_trained ? of.gradient(i, k).value() : T{};
  }
};

/// The pieces of norms (norm_piece), parameter after parameter, and a sum of squares for each.
struct norm_pieces {
  device_ranges ranges;
  const long* first;       // the number of the first piece of each parameter, and of all
  const long* into_piece;  // where each parameter begins in its first piece
  double* sums;

  constexpr long count() const { return first[ranges.count]; }
  constexpr int parameter_of(long piece) const {
    int low = 0, high = ranges.count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (first[middle] <= piece)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

/// The squares of the pieces of one or two arrays, in the order in which the CPU adds them up: 16 sums, then these in a tree.
template <class T>
struct squares_of_pieces {
  static constexpr int lanes = int(slice_alignment), at_once = 8, threads = lanes * at_once;
  struct shared {
    double part[threads];
  };
  norm_pieces pieces;
  const T* values[2];
  long count, blocks_of_array;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long array = l.block() / blocks_of_array, piece = l.block() % blocks_of_array * at_once + l.thread() / lanes;
    const int own = l.thread() % lanes;
    double sum = 0;
    if (piece < count) {
      const int k = pieces.parameter_of(piece);
      const parameter_range& p = pieces.ranges.all[k];
      const long from = p.begin - pieces.into_piece[k] + (piece - pieces.first[k]) * norm_piece, last = p.begin + p.elements;
      const long begin = from < p.begin ? p.begin : from, end = from + norm_piece < last ? from + norm_piece : last;
      for (long i = begin + own; i < end && !p.frozen; i += lanes) {
        const double value = double(values[array][i]);
        sum += strata::detail::product(value, value);
      }
    }
    memory.part[l.thread()] = sum;
    for (int distance = 1; distance < lanes; distance *= 2) {
      l.barrier();
      if (own % (2 * distance) == 0) memory.part[l.thread()] += memory.part[l.thread() + distance];
    }
    if (own == 0 && piece < count) pieces.sums[array * count + piece] = memory.part[l.thread()];
  }
};

/// The sum over the pieces of each parameter, for one array after the other.
struct add_pieces {
  norm_pieces pieces;
  double* to[2];

  constexpr void operator()(long i) const {
    const long array = i / pieces.ranges.count, k = i % pieces.ranges.count;
    const double* const sums = pieces.sums + array * pieces.count();
    double sum = 0;
    for (long piece = pieces.first[k]; piece < pieces.first[k + 1]; ++piece) sum += sums[piece];
    to[array][k] = sum;
  }
};

struct clip_factors {
  device_ranges ranges;
  const double* squares;      // 0 of those that are frozen
  const double* all_squares;  // of all parameters of the network
  int all_count;
  double* to;
  double clipnorm, global_clipnorm;

  template <class K>
  constexpr void operator()(K k) const {
    if (global_clipnorm > 0) {
      double sum = 0;
      for (int j = 0; j < all_count; ++j) sum += all_squares[j];
      to[k] = global_clipnorm_factor(sum, global_clipnorm);
    }
    if (clipnorm > 0) to[k] = clipnorm_factor(squares[k], clipnorm);
  }
};

template <class T, class Rule>
struct apply_rule {
  update_terms<T> of;
  slots_of<T, Rule> slots;

  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    if (!is_trained) return;
    const reduced_gradient<T> gradient = of.gradient(i, k);
    of.decay(i);
    slots(i, [&](auto&... slot) { of.now->template rule_as<Rule>()(of.weights[i], gradient, slot...); });
  }
};

/// The first pass of a parameterwise_rule.
template <class T, class Rule>
struct propose_direction {
  update_terms<T> of;
  slots_of<T, Rule> slots;

  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    T direction{};
    if (is_trained) {
      const reduced_gradient<T> gradient = of.gradient(i, k);
      of.decay(i);
      direction =
          slots(i, [&](auto&... slot) { return of.now->template rule_as<Rule>().propose(of.weights[i], gradient, slot...); });
    }
    of.first_array[i] = direction;
  }
};

/// The second moments of a parameter: of each row, then of each column; or of each element.
template <class T, class Rule>
struct follow_moments {
  parameter_range p;
  const update_numbers<T>* now;
  const T* gradient;  // of the parameter, as the rule sees it
  T* moments;
  sample_mean<T> applied;

  constexpr long rows() const { return p.elements / p.columns; }
  constexpr long count() const { return p.is_matrices() ? rows() + p.elements / (p.rows * p.columns) * p.columns : p.elements; }
  constexpr T square(long i) const { return now->template rule_as<Rule>().square(applied.of(gradient[i])); }
  constexpr void operator()(long i) const {
    const Rule& rule = now->template rule_as<Rule>();
    double sum = 0;
    if (!p.is_matrices()) {
      rule.follow(moments[i], square(i));
    } else if (i < rows()) {
      for (long j = 0; j < p.columns; ++j) sum += double(square(i * p.columns + j));
      rule.follow(moments[i], T(sum / double(p.columns)));
    } else {
      const long matrix = (i - rows()) / p.columns, column = (i - rows()) % p.columns;
      for (long k = 0; k < p.rows; ++k) sum += double(square((matrix * p.rows + k) * p.columns + column));
      rule.follow(moments[i], T(sum / double(p.rows)));
    }
  }
};
/// The mean of the moments of the rows of each matrix.
template <class T>
struct means_of_rows {
  parameter_range p;
  const T* moments;
  double* to;
  constexpr void operator()(long matrix) const {
    double sum = 0;
    for (long k = 0; k < p.rows; ++k) sum += double(moments[matrix * p.rows + k]);
    to[matrix] = sum / double(p.rows);
  }
};
/// The second pass: directions in place of gradients.
template <class T, class Rule>
struct propose_from_moments {
  parameter_range p;
  const update_numbers<T>* now;
  T *directions, *weights;  // of the parameter
  const T* moments;
  const double* means;
  sample_mean<T> applied;

  constexpr T moment(long i) const {
    if (!p.is_matrices()) return moments[i];
    const long rows = p.elements / p.columns, matrix = i / (p.rows * p.columns);
    return moments[rows + matrix * p.columns + i % p.columns] * T(double(moments[i / p.columns]) / means[matrix]);
  }
  constexpr void operator()(long i) const {
    weights[i] -= strata::detail::product(weights[i], now->weight_decay);
    directions[i] = now->template rule_as<Rule>().propose(applied.of(directions[i]), moment(i));
  }
};

/// The last pass of a parameterwise_rule or a factored_rule.
template <class T, class Rule>
struct apply_direction {
  update_terms<T> of;
  slots_of<T, Rule> slots;
  const double *weight_squares, *direction_squares;

  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    if (!is_trained) return;
    const Rule& rule = of.now->template rule_as<Rule>();
    const auto scale = rule.scale({std::sqrt(weight_squares[k]), std::sqrt(direction_squares[k]), of.ranges.all[k].elements});
    if constexpr (strata::detail::applies_with_slots<Rule, T, strata::detail::slots_of_rule<Rule>>)
      slots(i, [&](auto&... slot) { rule.apply(of.weights[i], of.first_array[i], scale, slot...); });
    else
      rule.apply(of.weights[i], of.first_array[i], scale);
  }
};

/// What a regularizer adds to the loss.
template <class T>
struct penalty_of_parameter {
  using value = double;
  static constexpr int threads = 128;
  device_ranges ranges;
  const T* weights;
  double* to;

  constexpr long terms(long k) const {
    return ranges.all[k].frozen || ranges.all[k].regularizer.empty() ? 0 : ranges.all[k].elements;
  }
  constexpr double term(long k, long i) const {
    const double w = weights[ranges.all[k].begin + i];
    return (w < 0 ? -w : w) * ranges.all[k].regularizer.l1 + w * w * ranges.all[k].regularizer.l2;
  }
  constexpr void store(long k, double sum) const { to[k] = sum; }
};

}  // namespace machine

/// Updates the weights that one device keeps.
template <class T>
class cuda_update {
  cuda_device on_;
  machine::queue queue_;
  std::vector<parameter_range> ranges_;
  cuda_device::buffer<parameter_range> device_ranges_;
  cuda_device::buffer<T*> arrays_;
  std::vector<T*> known_arrays_;         // that arrays_ has
  cuda_device::buffer<double> numbers_;  // for each parameter: squares of gradients, weights, directions; factors; penalties
  cuda_device::buffer<update_numbers<T>> numbers_of_step_;
  cuda_device::buffer<double> means_;  // of a factored_rule, for each matrix of a parameter
  cuda_device::buffer<long> first_pieces_, into_pieces_;
  cuda_device::buffer<double> squares_of_pieces_;  // of two arrays
  long pieces_ = 0;
  bool has_penalties_ = false;

 public:
  /// begins: where the parameters begin in the arena of the whole network, if this device has another one. Norms are sums over
  /// pieces of that.
  cuda_update(const cuda_device& on, const machine::queue& q, std::span<const parameter_range> ranges,
              std::span<const long> begins = {})
      : on_(on),
        queue_(q),
        ranges_(ranges.begin(), ranges.end()),
        device_ranges_(on.allocate<parameter_range>(ranges.size())),
        arrays_(on.allocate<T*>(max_leaves)),
        numbers_(on.allocate<double>(5 * ranges.size())),
        numbers_of_step_(on.allocate<update_numbers<T>>(1)),
        first_pieces_(on.allocate<long>(ranges.size() + 1)),
        into_pieces_(on.allocate<long>(ranges.size())) {
    long matrices = 0;
    std::vector<long> first_pieces{0}, into_pieces;
    for (std::size_t k = 0; k < ranges_.size(); ++k) {
      const parameter_range& p = ranges_[k];
      has_penalties_ = has_penalties_ || !p.regularizer.empty();
      matrices = std::max(matrices, p.elements / (p.rows * p.columns));
      into_pieces.push_back((begins.empty() ? p.begin : begins[k]) % norm_piece);
      first_pieces.push_back(pieces_ += (into_pieces[k] + p.elements + norm_piece - 1) / norm_piece);
    }
    squares_of_pieces_ = on.allocate<double>(2 * std::size_t(pieces_));
    on_.copy_to_device(queue_, std::span<const long>(first_pieces), first_pieces_.data());
    on_.copy_to_device(queue_, std::span<const long>(into_pieces), into_pieces_.data());
    means_ = on.allocate<double>(std::size_t(matrices));
    on_.copy_to_device(queue_, std::span<const parameter_range>(ranges_), device_ranges_.data());
  }
  void set_ranges(std::span<const parameter_range> ranges) {
    ranges_.assign(ranges.begin(), ranges.end());
    on_.copy_to_device(queue_, std::span<const parameter_range>(ranges_), device_ranges_.data());
  }

  /// The numbers of a step, where no one else has brought them to the device.
  void tell_numbers(const update_numbers<T>& now) { on_.copy_to_device(queue_, std::span(&now, 1), numbers_of_step_.data()); }
  const update_numbers<T>* told_numbers() const { return numbers_of_step_.data(); }
  /// The arrays of the gradients of the next runs, on this device.
  void tell_arrays(std::span<T* const> now) {
    if (now.size() <= known_arrays_.size() && std::ranges::equal(now, std::span(known_arrays_).first(now.size()))) return;
    known_arrays_.assign(now.begin(), now.end());
    on_.copy_to_device(queue_, std::span<T* const>(known_arrays_), arrays_.data());
  }

  /// The squares of the norms of the gradients as a rule sees them, one for each parameter, in memory of the device.
  struct squared_norms {
    const double* squares = nullptr;
    int count = 0;
  };
  template <class Optimizer>
  void take_norms(const Optimizer& rules, const update_numbers<T>* now, const global_gradient<T, cuda_device>& gradient,
                  T* weights) {
    if (ranges_.empty()) return;
    machine::update_terms<T> unclipped = terms_of(rules, now, gradient, weights);
    unclipped.clip_value = 0;
    machine::for_each_index(queue_, ranges_.back().end, machine::store_mean<T>{unclipped});
    take_squares(0, unclipped.first_array);
  }
  /// What take_norms has found.
  const double* norms() const { return numbers(0); }

  /// slots: `stride` elements each, one after the other. tell_arrays() has got the arrays of the gradient; the first is
  /// overwritten. now: in memory of the device. also: what the last kernel does besides. norms: of the parameters of the whole
  /// network, if this device has some of them only; then take_norms() has come before.
  template <class Optimizer, class Also>
  void run(const Optimizer& rules, const update_numbers<T>* now, const global_gradient<T, cuda_device>& gradient, T* weights,
           T* slots, long stride, const machine::grid<Also>& also, squared_norms norms_of_all = {}) {
    if (ranges_.empty()) return machine::launch(queue_, also.blocks, also.code);
    machine::update_terms<T> terms = terms_of(rules, now, gradient, weights);
    const long size = ranges_.back().end;
    if (rules.clipnorm > 0 || rules.global_clipnorm > 0) {
      if (!norms_of_all.squares) {
        take_norms(rules, now, gradient, weights);
        norms_of_all = {norms(), int(ranges_.size())};
      }
      machine::for_each_index(queue_, long(ranges_.size()),
                              machine::clip_factors{ranges(), numbers(0), norms_of_all.squares, norms_of_all.count, numbers(3),
                                                    rules.clipnorm, rules.global_clipnorm});
      use_first_array(terms);
      terms.factors = numbers(3), terms.has_penalties = false;
    }
    rules.template with_rule<T>(0, 0.0, [&]<class Rule>(const Rule&) {
      const machine::slots_of<T, Rule> own{slots, stride};
      if constexpr (elementwise_rule<Rule, T>) {
        machine::launch_together(queue_, machine::indices(size, machine::apply_rule<T, Rule>{terms, own}), also);
      } else {
        if constexpr (factored_rule<Rule, T>) {
          machine::for_each_index(queue_, size, machine::store_mean<T>{terms});
          propose_from_moments<Rule>(terms, slots);
        } else {
          machine::for_each_index(queue_, size, machine::propose_direction<T, Rule>{terms, own});
        }
        take_squares(1, weights, terms.first_array);
        machine::launch_together(
            queue_, machine::indices(size, machine::apply_direction<T, Rule>{terms, own, numbers(1), numbers(2)}), also);
      }
    });
  }

  /// Enqueues the penalties of the weights as they are now.
  void penalize(const T* weights) {
    if (has_penalties_)
      machine::for_each_sum(queue_, long(ranges_.size()), machine::penalty_of_parameter<T>{ranges(), weights, numbers(4)});
  }
  /// One for each parameter, in memory of the device.
  const double* penalties() const { return numbers(4); }
  void read_penalties(std::span<double> to) const { on_.copy_to_host(queue_, penalties(), to); }

 private:
  template <class Optimizer>
  machine::update_terms<T> terms_of(const Optimizer& rules, const update_numbers<T>* now,
                                    const global_gradient<T, cuda_device>& gradient, T* weights) const {
    return {ranges(),
            {arrays_.data(), gradient.count()},
            gradient.mean(),
            weights,
            gradient.arrays()[0],
            nullptr,
            now,
            T(rules.clipvalue),
            has_penalties_};
  }
  machine::device_ranges ranges() const { return {device_ranges_.data(), int(ranges_.size())}; }
  double* numbers(int which) const { return numbers_.data() + std::size_t(which) * ranges_.size(); }
  /// Of one array, or of two whose numbers follow each other.
  void take_squares(int which, const T* first, const T* second = nullptr) {
    using squares = machine::squares_of_pieces<T>;
    const machine::norm_pieces pieces{ranges(), first_pieces_.data(), into_pieces_.data(), squares_of_pieces_.data()};
    const long arrays = second ? 2 : 1, blocks = (pieces_ + squares::at_once - 1) / squares::at_once;
    machine::launch(queue_, arrays * blocks, squares{pieces, {first, second}, pieces_, blocks});
    machine::for_each_index(queue_, arrays * long(ranges_.size()),
                            machine::add_pieces{pieces, {numbers(which), second ? numbers(which + 1) : nullptr}});
  }
  /// The first array holds the mean itself.
  void use_first_array(machine::update_terms<T>& terms) {
    terms.sum.count = 1;
    terms.mean = detail::after_reduction::applied(terms.mean);
  }
  template <class Rule>
  void propose_from_moments(const machine::update_terms<T>& terms, T* slots) {
    const sample_mean<T> applied = detail::after_reduction::applied(terms.mean);
    for (const parameter_range& p : ranges_) {
      if (p.frozen) continue;
      T *const own = terms.first_array + p.begin, *const moments = slots + p.begin;
      const machine::follow_moments<T, Rule> follow{p, terms.now, own, moments, applied};
      machine::for_each_index(queue_, follow.count(), follow);
      if (p.is_matrices())
        machine::for_each_index(queue_, p.elements / (p.rows * p.columns), machine::means_of_rows<T>{p, moments, means_.data()});
      machine::for_each_index(
          queue_, p.elements,
          machine::propose_from_moments<T, Rule>{p, terms.now, own, terms.weights + p.begin, moments, means_.data(), applied});
    }
  }
};

}  // namespace strata
