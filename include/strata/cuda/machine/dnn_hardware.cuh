// cuDNN through its backend API: a description becomes a graph of one convolution and, forward, of bias and relu. dnn_emulated.hpp
// has the same names.
#pragma once
#if defined(STRATA_CUDNN)
#include <cudnn_graph.h>
#endif

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/cuda/machine/dnn_convolution.hpp>
#include <strata/cuda/machine/machine.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::machine {

#if defined(STRATA_CUDNN)
inline constexpr bool has_dnn = true;
/// The workspace of a convolution, in bytes. Plans that need more are not used.
inline constexpr std::size_t dnn_workspace = std::size_t{32} << 20;
/// So many plans of a convolution are measured. Many plans are compiled when they are made, which takes up to seconds each.
inline constexpr std::size_t most_dnn_plans = 4;

namespace detail {

inline void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw_error({"cuDNN: ", what, ": ", cudnnGetErrorString(status)});
}
/// Handles of cuDNN that no queue has at the moment, by device. None is destroyed: at the end of the program the driver may be gone
/// already.
struct dnn_handles {
  std::mutex mutex;
  std::multimap<int, cudnnHandle_t> all;

  static dnn_handles& the() {
    static dnn_handles& one = *new dnn_handles;
    return one;
  }
  cudnnHandle_t take(int device) {
    const std::lock_guard locked(mutex);
    const auto found = all.find(device);
    return found == all.end() ? nullptr : all.extract(found).mapped();
  }
  void give(int device, cudnnHandle_t handle) {
    (void)cudnnSetStream(handle, nullptr);
    const std::lock_guard locked(mutex);
    all.emplace(device, handle);
  }
};
/// Returns the handle of a queue. The first call makes it, which no capture allows; a plan is made with it, so it is there when the
/// plan runs, in whichever thread.
inline cudnnHandle_t dnn_handle(const queue& q) {
  const cudaStream_t stream = q.handle();
  std::shared_ptr<void>& kept = q.library_handle();
  if (!kept) {
    cudnnHandle_t handle = dnn_handles::the().take(q.device());
    if (!handle) check(cudnnCreate(&handle), "cudnnCreate");
    std::shared_ptr<void> owned(
        handle, [device = q.device()](void* h) { dnn_handles::the().give(device, static_cast<cudnnHandle_t>(h)); });
    check(cudnnSetStream(handle, stream), "cudnnSetStream");
    kept = std::move(owned);  // a later call would take a handle for one that has the stream
  }
  return static_cast<cudnnHandle_t>(kept.get());
}

/// The type of an attribute, from that of its values.
template <class T>
struct dnn_type;
template <cudnnBackendAttributeType_t Type>
struct is_dnn_type {
  static constexpr cudnnBackendAttributeType_t value = Type;
};
template <>
struct dnn_type<std::int64_t> : is_dnn_type<CUDNN_TYPE_INT64> {};
template <>
struct dnn_type<float> : is_dnn_type<CUDNN_TYPE_FLOAT> {};
template <>
struct dnn_type<bool> : is_dnn_type<CUDNN_TYPE_BOOLEAN> {};
template <>
struct dnn_type<void*> : is_dnn_type<CUDNN_TYPE_VOID_PTR> {};
template <>
struct dnn_type<char> : is_dnn_type<CUDNN_TYPE_CHAR> {};
template <>
struct dnn_type<cudnnHandle_t> : is_dnn_type<CUDNN_TYPE_HANDLE> {};
template <>
struct dnn_type<cudnnDataType_t> : is_dnn_type<CUDNN_TYPE_DATA_TYPE> {};
template <>
struct dnn_type<cudnnConvolutionMode_t> : is_dnn_type<CUDNN_TYPE_CONVOLUTION_MODE> {};
template <>
struct dnn_type<cudnnPointwiseMode_t> : is_dnn_type<CUDNN_TYPE_POINTWISE_MODE> {};
template <>
struct dnn_type<cudnnBackendHeurMode_t> : is_dnn_type<CUDNN_TYPE_HEUR_MODE> {};
template <>
struct dnn_type<cudnnBackendNumericalNote_t> : is_dnn_type<CUDNN_TYPE_NUMERICAL_NOTE> {};

/// A descriptor of the backend API.
class dnn_descriptor {
  cudnnBackendDescriptor_t handle_ = nullptr;

 public:
  explicit dnn_descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &handle_), "cudnnBackendCreateDescriptor");
  }
  dnn_descriptor(dnn_descriptor&& from) noexcept : handle_(std::exchange(from.handle_, nullptr)) {}
  dnn_descriptor& operator=(dnn_descriptor&& from) noexcept {
    std::swap(handle_, from.handle_);
    return *this;
  }
  ~dnn_descriptor() {
    if (handle_) cudnnBackendDestroyDescriptor(handle_);
  }
  cudnnBackendDescriptor_t handle() const { return handle_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, const T* values, std::size_t count) {
    check(cudnnBackendSetAttribute(handle_, name, dnn_type<T>::value, std::int64_t(count), values), "an attribute");
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, T value) {
    set(name, &value, 1);
  }
  template <class T, std::size_t N>
  void set(cudnnBackendAttributeName_t name, const std::array<T, N>& values) {
    set(name, values.data(), N);
  }
  void set(cudnnBackendAttributeName_t name, const dnn_descriptor& value) {
    check(cudnnBackendSetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_), "an attribute");
  }
  /// Up to `most` values.
  template <class T>
  std::vector<T> get(cudnnBackendAttributeName_t name, std::size_t most) const {
    std::vector<T> values(most);
    std::int64_t count = 0;
    if (cudnnBackendGetAttribute(handle_, name, dnn_type<T>::value, std::int64_t(most), &count, values.data()) !=
        CUDNN_STATUS_SUCCESS)
      return {};
    values.resize(std::size_t(std::min<std::int64_t>(count, std::int64_t(most))));
    return values;
  }
  /// Returns false if the library does not support what the descriptor describes.
  bool finalize() { return cudnnBackendFinalize(handle_) == CUDNN_STATUS_SUCCESS; }
};

/// The target of plans: the device of a handle or, without one, a described device. Plans for the latter cannot run here.
struct dnn_target {
  cudnnHandle_t handle = nullptr;
  const dnn_descriptor* device = nullptr;

  void set_handle(dnn_descriptor& of, cudnnBackendAttributeName_t by_handle) const {
    if (handle) of.set(by_handle, handle);
  }
  void set_device(dnn_descriptor& of, cudnnBackendAttributeName_t by_device) const {
    if (device) of.set(by_device, *device);
  }
};

/// The numbers by which arrays are bound to a graph.
enum dnn_array : std::int64_t { inputs = 1, kernel, outputs, bias, sums, biased };

/// The operations of a description, with all descriptors that they refer to.
class dnn_graph {
  std::vector<dnn_descriptor> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::optional<dnn_descriptor> graph_;

  static cudnnDataType_t of_library(factor_type t) { return t == factor_type::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT; }
  const dnn_descriptor& keep(dnn_descriptor part, const char* what) {
    if (!part.finalize()) throw_error({"cuDNN: ", what, " was refused"});
    parts_.push_back(std::move(part));
    return parts_.back();
  }
  /// extents: (N, C, H, W), where C lies innermost.
  const dnn_descriptor& tensor(dnn_array id, factor_type type, const std::array<std::int64_t, 4>& extents, int alignment,
                               bool is_virtual = false) {
    const auto [n, c, h, w] = extents;
    dnn_descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t(id));
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, of_library(type));
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, std::array<std::int64_t, 4>{h * w * c, 1, w * c, c});
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t(alignment));
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
    return keep(std::move(made), "an array");
  }
  /// y = x + b, or y = mode(x).
  const dnn_descriptor& pointwise(cudnnPointwiseMode_t mode, const dnn_descriptor& x, const dnn_descriptor* b,
                                  const dnn_descriptor& y) {
    dnn_descriptor what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    what.set(CUDNN_ATTR_POINTWISE_MODE, mode);
    what.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    const dnn_descriptor& kept = keep(std::move(what), "a pointwise function");
    dnn_descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kept);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return keep(std::move(made), "a pointwise operation");
  }

 public:
  explicit dnn_graph(const dnn_convolution& c) {
    parts_.reserve(16);  // they refer to each other
    const dnn_descriptor& x =
        tensor(inputs, c.factors, {c.images, c.channels, c.down.in, c.across.in}, c.alignment);
    const dnn_descriptor& w =
        tensor(kernel, c.factors, {c.filters, c.channels, c.down.kernel, c.across.kernel}, c.alignment);
    const std::array<std::int64_t, 4> extents{c.images, c.filters, c.down.out, c.across.out};
    const dnn_descriptor& y = tensor(outputs, c.factors, extents, c.alignment);

    dnn_descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    using pair = std::array<std::int64_t, 2>;
    window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
    window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
    window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, pair{c.down.dilation, c.across.dilation});
    window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, pair{c.down.stride, c.across.stride});
    window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pair{c.down.padding_before, c.across.padding_before});
    window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pair{c.down.padding_after, c.across.padding_after});
    const dnn_descriptor& how = keep(std::move(window), "a window");

    if (c.direction == dnn_direction::forward) {
      const bool goes_on = c.adds_bias || c.applies_relu;
      const dnn_descriptor& sum = goes_on ? tensor(sums, factor_type::f32, extents, c.alignment, true) : y;
      dnn_descriptor made(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.f);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.f);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, how);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, sum);
      operations_.push_back(keep(std::move(made), "a convolution").handle());
      const dnn_descriptor* last = &sum;
      if (c.adds_bias) {
        const dnn_descriptor& b = tensor(bias, factor_type::f32, {1, c.filters, 1, 1}, c.alignment);
        const dnn_descriptor& with_bias = c.applies_relu ? tensor(biased, factor_type::f32, extents, c.alignment, true) : y;
        operations_.push_back(pointwise(CUDNN_POINTWISE_ADD, sum, &b, with_bias).handle());
        last = &with_bias;
      }
      if (c.applies_relu) operations_.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, *last, nullptr, y).handle());
    } else if (c.direction == dnn_direction::input_gradient) {
      dnn_descriptor made(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1.f);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0.f);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, how);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, x);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, y);
      operations_.push_back(keep(std::move(made), "the gradient of the input").handle());
    } else {
      dnn_descriptor made(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1.f);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 0.f);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, how);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, w);
      made.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, y);
      operations_.push_back(keep(std::move(made), "the gradient of the kernel").handle());
    }
  }

  /// Engine configurations that the library proposes, the most promising first; none if it cannot compute the graph. Those of the
  /// second list are slower, but only there are some without tensor cores.
  std::vector<dnn_descriptor> configurations(const dnn_target& target) {
    dnn_descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    target.set_handle(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    check(cudnnBackendSetAttribute(graph.handle(), CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   std::int64_t(operations_.size()), operations_.data()),
          "the operations of a graph");
    if (!graph.finalize()) return {};
    graph_ = std::move(graph);
    std::vector<dnn_descriptor> all;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      dnn_descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
      target.set_device(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
      if (!heuristics.finalize()) continue;
      std::vector<dnn_descriptor> found;
      std::vector<cudnnBackendDescriptor_t> handles;
      for (int i = 0; i < 16; ++i) {
        found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        handles.push_back(found.back().handle());
      }
      std::int64_t count = 0;
      if (cudnnBackendGetAttribute(heuristics.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   std::int64_t(handles.size()), &count, handles.data()) != CUDNN_STATUS_SUCCESS)
        continue;
      for (std::size_t i = 0; i < found.size() && std::int64_t(i) < count; ++i) all.push_back(std::move(found[i]));
    }
    return all;
  }
};

/// True if an engine rounds as the description allows, and gives the same bits in each run.
inline bool is_exact_enough(const dnn_descriptor& configuration, factor_type factors) {
  const dnn_descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.handle();
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(configuration.handle(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                               &handle) != CUDNN_STATUS_SUCCESS)
    return false;
  const auto notes =
      engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, std::size_t(CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
  const auto has = [&](cudnnBackendNumericalNote_t note) { return std::ranges::find(notes, note) != notes.end(); };
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  // Tensor cores multiply floats as TF32.
  return factors != factor_type::f32 || !(has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
}

}  // namespace detail

/// Identifies the device and the library: plans chosen on one are invalid on another.
inline std::string dnn_identity(int device) {
  cudaDeviceProp properties{};
  detail::check(device, cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return strata::detail::text_of(
      {properties.name, " with ", properties.multiProcessorCount, " multiprocessors, cuDNN ", long(cudnnGetVersion())});
}

/// A way to compute a convolution: an execution plan of cuDNN.
class dnn_plan {
  dnn_convolution what_;
  detail::dnn_descriptor plan_;

  dnn_plan(const dnn_convolution& what, detail::dnn_descriptor plan) : what_(what), plan_(std::move(plan)) {}
  static bool fits(const detail::dnn_descriptor& plan) {
    const auto bytes = plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1);
    return bytes.size() == 1 && bytes[0] <= std::int64_t(dnn_workspace);
  }

 public:
  /// The most promising ones of those that may be able to run it, the best of them first.
  static std::vector<dnn_plan> candidates(const queue& q, const dnn_convolution& what) {
    return candidates({detail::dnn_handle(q)}, what);
  }
  static std::vector<dnn_plan> candidates(const detail::dnn_target& target, const dnn_convolution& what) {
    detail::dnn_graph graph(what);
    std::vector<dnn_plan> all;
    for (detail::dnn_descriptor& each : graph.configurations(target)) {
      if (!detail::is_exact_enough(each, what.factors)) continue;
      detail::dnn_descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      target.set_handle(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
      target.set_device(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, each);
      if (plan.finalize() && fits(plan)) all.push_back({what, std::move(plan)});
      if (all.size() == most_dnn_plans) break;
    }
    return all;
  }
  /// Nothing if the text is not that of a plan which this library can run.
  static std::optional<dnn_plan> from_text(const queue& q, const dnn_convolution& what, const std::string& text) {
    detail::dnn_descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, detail::dnn_handle(q));
    if (cudnnBackendSetAttribute(plan.handle(), CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                 std::int64_t(text.size()), text.data()) != CUDNN_STATUS_SUCCESS ||
        !plan.finalize() || !fits(plan))
      return {};
    return dnn_plan(what, std::move(plan));
  }
  std::string text() const {
    std::int64_t size = 0;
    detail::check(cudnnBackendGetAttribute(plan_.handle(), CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0,
                                           &size, nullptr),
                  "a plan as text");
    const auto all = plan_.get<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, std::size_t(size));
    return std::string(all.begin(), std::ranges::find(all, '\0'));
  }

  void run(const queue& q, const dnn_addresses& at) const {
    const std::array<std::int64_t, 4> names{detail::inputs, detail::kernel, detail::outputs, detail::bias};
    const std::array<void*, 4> places{at.inputs, at.kernel, at.outputs, const_cast<float*>(at.bias)};
    const std::size_t count = what_.adds_bias ? 4 : 3;
    detail::dnn_descriptor arrays(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    arrays.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names.data(), count);
    arrays.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, places.data(), count);
    arrays.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, at.workspace);
    if (!arrays.finalize()) throw_error({"cuDNN: the arrays of a convolution (", text_of(what_), ") were refused"});
    detail::check(cudnnBackendExecute(detail::dnn_handle(q), plan_.handle(), arrays.handle()), "a convolution");
  }
  /// The mean of some runs.
  double milliseconds(const queue& q, const dnn_addresses& at) const {
    constexpr int runs = 5;
    run(q, at);
    return milliseconds_of(q, [&] {
             for (int i = 0; i < runs; ++i) run(q, at);
           }) / runs;
  }
};

#else
inline constexpr bool has_dnn = false;
inline constexpr std::size_t dnn_workspace = 0;
#endif

}  // namespace strata::machine
