// The update after a step, on a GPU: leaf gradients are added in the tree over leaves, reduced and clipped, and the optimizer's
// rule is applied to each element of the arena. cpu/engine/weight_update.hpp has the same passes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/concepts/optimizer.hpp>
#include <strata/cuda/engine/factored_kernels.hpp>
#include <strata/cuda/engine/norm_kernels.hpp>
#include <strata/cuda/engine/penalty_kernel.hpp>
#include <strata/cuda/engine/rule_kernels.hpp>
#include <strata/cuda/engine/update_numbers.hpp>
#include <strata/cuda/engine/update_terms.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient.hpp>
#include <vector>

namespace strata::core {

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
  /// begins: the begins of the parameters in the arena of the whole network, if this device has another arena. The pieces of
  /// norms are those of the whole arena.
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

  /// Uploads the values of a step, if they are not on the device already.
  void tell_numbers(const update_numbers<T>& now) { on_.copy_to_device(queue_, std::span(&now, 1), numbers_of_step_.data()); }
  const update_numbers<T>* told_numbers() const { return numbers_of_step_.data(); }
  /// The arrays of the gradients of the next runs, on this device.
  void tell_arrays(std::span<T* const> now) {
    if (now.size() <= known_arrays_.size() && std::ranges::equal(now, std::span(known_arrays_).first(now.size()))) return;
    known_arrays_.assign(now.begin(), now.end());
    on_.copy_to_device(queue_, std::span<T* const>(known_arrays_), arrays_.data());
  }

  /// The squared norms of the gradients with regularizers, before clipping, one for each parameter, in memory of the device.
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
  /// The squared norms that take_norms has computed.
  const double* norms() const { return numbers(0); }

  /// slots: `stride` elements each, one after the other. tell_arrays() has been called with the arrays of the gradient; the first
  /// is overwritten. now: in memory of the device. also: a kernel that is launched along with the last one. norms_of_all: those
  /// of the parameters of the whole network, if this device has only some; then take_norms() has been called before.
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
  /// Computes the squares of one array, or of two whose results are stored one after the other.
  void take_squares(int which, const T* first, const T* second = nullptr) {
    using squares = machine::squares_of_pieces<T>;
    const machine::norm_pieces pieces{ranges(), first_pieces_.data(), into_pieces_.data(), squares_of_pieces_.data()};
    const long arrays = second ? 2 : 1, blocks = (pieces_ + squares::at_once - 1) / squares::at_once;
    machine::launch(queue_, arrays * blocks, squares{pieces, {first, second}, pieces_, blocks});
    machine::launch(queue_, arrays * long(ranges_.size()),
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

}  // namespace strata::core
