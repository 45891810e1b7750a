// Runs the kernels of one layer, as a step does, on a recorded input, and compares all they compute with the recording.
#pragma once
#include <limits>
#include <strata/base/arena.hpp>
#include <strata/base/meta.hpp>
#include <strata/base/precision.hpp>
#include <strata/concepts/layer.hpp>
#include <strata/kernel/kernel.hpp>

#include "recorded.hpp"

namespace strata::test {
using namespace core;

/// A kernel with its type erased, so that everything below is compiled once for each precision.
template <class T>
struct stage {
  kernel_code<T> code;
  int saved, scratch, scratch_per_sample, statistics, derived, in, out;

  template <class Kernel>
  static stage of(shape in, shape out) {
    return {code_of<Kernel, T>,
            traits_of_kernel<Kernel>.saved,
            traits_of_kernel<Kernel>.scratch,
            traits_of_kernel<Kernel>.scratch_per_sample,
            traits_of_kernel<Kernel>.statistics,
            traits_of_kernel<Kernel>.derived,
            in.size(),
            out.size()};
  }
};

/// The first stage owns all parameters: what follows a layer's own operation is an activation.
template <class T>
struct layer_under_test {
  shape in;
  std::vector<parameter> parameters;
  std::vector<stage<T>> stages;
};

/// The kernels that a program would use: the fused one if there is one.
template <class Layer, shape In, class Backend, class Precision>
layer_under_test<typename Precision::value_type> lowered() {
  using T = typename Precision::value_type;
  layer_under_test<T> layer{In, {}, {}};
  [&]<class Own, class... Rest>(type_list<Own, Rest...>) {
    using First = computed_operation_t<Own, In>;
    parameter owned[max_parameters] = {};
    const int count = info_of<Own>.parameters(In, owned);
    layer.parameters.assign(owned, owned + count);

    constexpr shape middle = info_of<First>.output_shape(std::array{In}).value;
    using together = typename find_kernel<Backend, fused<First, Rest...>, Precision, In>::type;
    if constexpr (sizeof...(Rest) > 0 && !std::is_void_v<together>) {
      layer.stages.push_back(stage<T>::template of<together>(In, middle));
    } else {
      layer.stages.push_back(stage<T>::template of<typename find_kernel<Backend, First, Precision, In>::type>(In, middle));
      (layer.stages.push_back(
           stage<T>::template of<typename find_kernel<Backend, Rest, Precision, middle>::type>(middle, middle)),
       ...);
    }
  }(operations_of<Layer>{});
  return layer;
}

template <class T>
class layer_run {
  const layer_under_test<T>& layer_;
  recording& recorded_;
  std::string name_;
  int count_;
  double tolerance_;
  std::vector<arena<T>> values_, gradients_;  // between the stages
  std::vector<arena<T>> weights_, weight_gradients_;
  struct memory {
    arena<T> saved, scratch, derived;
    arena<double> statistics;
  };
  std::vector<memory> memories_;

  static arena<T> unwritten(std::size_t size) {
    arena<T> a(size);
    std::ranges::fill(a.span(), std::numeric_limits<T>::quiet_NaN());
    return a;
  }
  arena<T> read(const std::string& tensor) {
    const std::vector<T> values = recorded_.tensor<T>(name_ + '/' + tensor);
    arena<T> a(values.size());
    std::ranges::copy(values, a.data());
    return a;
  }
  void expect(const std::string& tensor, const arena<T>& got) {
    compare<T>(name_ + '/' + tensor, got.span(), recorded_.tensor(name_ + '/' + tensor), tolerance_);
  }

  operands<T> operands_of(std::size_t s) {
    operands<T> o;
    o.count = count_, o.total = count_;
    o.x[0] = values_[s].data(), o.y = values_[s + 1].data();
    o.dx[0] = gradients_[s].data(), o.dy = gradients_[s + 1].data();
    for (std::size_t p = 0; s == 0 && p < weights_.size(); ++p) {
      o.w[p] = weights_[p].data();
      if (layer_.parameters[p].trainable) o.dw[p] = weight_gradients_[p].data();
    }
    memory& m = memories_[s];
    o.saved = m.saved.data(), o.scratch = m.scratch.data(), o.derived = m.derived.data(), o.statistics = m.statistics.data();
    return o;
  }

 public:
  layer_run(const layer_under_test<T>& layer, recording& recorded, std::string name)
      : layer_(layer), recorded_(recorded), name_(std::move(name)), tolerance_(tolerance_of<T>) {
    values_.push_back(read("input"));
    count_ = int(values_[0].size()) / layer.in.size();
    gradients_.push_back(unwritten(values_[0].size()));
    for (const stage<T>& s : layer.stages) {
      values_.push_back(unwritten(std::size_t(count_ * s.out)));
      gradients_.push_back(unwritten(std::size_t(count_ * s.out)));
      memories_.push_back({unwritten(std::size_t(count_ * s.saved)),
                           unwritten(std::size_t(s.scratch + count_ * s.scratch_per_sample)), unwritten(std::size_t(s.derived)),
                           arena<double>(std::size_t(2 * s.statistics))});
    }
    for (const parameter& p : layer.parameters) {
      weights_.push_back(read(p.name));
      REQUIRE(int(weights_.back().size()) == p.extents.size());
      weight_gradients_.push_back(unwritten(weights_.back().size()));
    }
    if (layer.stages[0].code.derive) {
      const T* w[max_parameters] = {};
      for (std::size_t p = 0; p < weights_.size(); ++p) w[p] = weights_[p].data();
      layer.stages[0].code.derive(w, memories_[0].derived.data());
    }
  }

  void infer() {
    for (std::size_t s = 0; s < layer_.stages.size(); ++s) layer_.stages[s].code.infer(operands_of(s));
    expect("output", values_.back());
  }

  void train() {
    for (std::size_t s = 0; s < layer_.stages.size(); ++s) {
      if (layer_.stages[s].code.collect) layer_.stages[s].code.collect(operands_of(s));
      layer_.stages[s].code.forward(operands_of(s));
    }
    expect("output", values_.back());
    gradients_.back() = read("output_gradient");
    for (std::size_t s = layer_.stages.size(); s-- > 0;) {
      if (layer_.stages[s].code.collect_backward) layer_.stages[s].code.collect_backward(operands_of(s));
      layer_.stages[s].code.backward(operands_of(s));
    }
    expect("input_gradient", gradients_[0]);
    for (std::size_t p = 0; p < weights_.size(); ++p)
      if (layer_.parameters[p].trainable) expect(std::string(layer_.parameters[p].name) + "_gradient", weight_gradients_[p]);
    if (layer_.stages[0].code.update_state) update_state();
  }

 private:
  void update_state() {
    T* w[max_parameters] = {};
    for (std::size_t p = 0; p < weights_.size(); ++p) w[p] = weights_[p].data();
    layer_.stages[0].code.update_state(operands_of(0), w);
    for (std::size_t p = 0; p < weights_.size(); ++p)
      if (!layer_.parameters[p].trainable) expect(std::string(layer_.parameters[p].name) + "_after", weights_[p]);
  }
};

template <class Layer, shape In, class Backend, class Precision>
void check_layer_on(recording& recorded, const std::string& name) {
  using T = typename Precision::value_type;
  INFO(name << " on " << Backend::name << ", " << sizeof(T) << " bytes");
  const auto layer = lowered<Layer, In, Backend, Precision>();
  // A layer that normalises as in inference has no gradient in strata.
  if (name.ends_with("_inference")) {
    layer_run<T>(layer, recorded, name).infer();
    for (const char* gradient : {"output_gradient", "input_gradient", "gamma_gradient", "beta_gradient"})
      recorded.leave_out(name + '/' + gradient);
  } else {
    layer_run<T>(layer, recorded, name).train();
    if (!layer.stages[0].code.collect) layer_run<T>(layer, recorded, name).infer();
  }
}

/// In: the shape of one sample; the recording has the number of samples.
template <class Layer, shape In>
void check_layer(recording& recorded, const std::string& name) {
  check_layer_on<Layer, In, reference, precision::f64>(recorded, name);
  check_layer_on<Layer, In, reference, precision::f32>(recorded, name);
  check_layer_on<Layer, In, cpu, precision::f64>(recorded, name);
  check_layer_on<Layer, In, cpu, precision::f32>(recorded, name);
}

}  // namespace strata::test
