// A few training steps of networks with all kinds of kernels, all losses and metrics, and images that are resized
// or rotated. Each line is a name, a hash of the results and a loss: parameters, reported values (NETWORK/reported/0 is the loss,
// the metrics follow), a loss and its gradient, or pixels and their sum.
#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <strata/base/arithmetic.hpp>
#include <strata/base/hash.hpp>
#include <strata/cpu/cpu.hpp>
#include <strata/data/image/random_rotation.hpp>
#include <strata/data/image/resize.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/layers/activation.hpp>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/residual.hpp>
#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/binary_focal_crossentropy.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/losses/hinge.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/kl_divergence.hpp>
#include <strata/losses/log_cosh.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_absolute_percentage_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/losses/mean_squared_logarithmic_error.hpp>
#include <strata/losses/poisson.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/metrics/binary_accuracy.hpp>
#include <strata/metrics/categorical_accuracy.hpp>
#include <strata/optimizers/adam.hpp>
#include <string>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dropout<0.2_r>, dense<10, softmax>>;
using mlp = sequential<input<784>, dense<128, tanh_activation>, dense<64, sigmoid>, dense<10, softmax>>;
using residual_net =
    sequential<input<16, 16, 3>, conv2d<16, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
               residual<conv2d<16, 3, same_padding>, batch_norm<>, activation<relu>, conv2d<16, 3, same_padding>, batch_norm<>>,
               activation<relu>, conv2d<16, 3, dilation<3>, relu>, conv2d<16, 3, same_padding, relu>,  // 10x10
               conv2d<32, 3, stride<2>, same_padding, channel_groups<4>>, activation<relu>, average_pool2d<2>,
               conv2d<16, 3, same_padding, relu>,  // 2x2
               conv2d<17, 1, relu>, global_average_pool2d, dense<10, softmax>>;
// Its convolutions have Winograd's tiles of every size.
static_assert(simd::winograd_tile(16, 16, 16, 16) == 4 && simd::winograd_gradient_tile(16, 16) == 4);
static_assert(simd::winograd_tile(16, 16, 10, 10) == 5 && simd::winograd_gradient_tile(10, 10) == 5);
static_assert(simd::winograd_tile(32, 16, 2, 2) == 2 && simd::winograd_tile(16, 32, 2, 2) == 2);

// Its reported values: a loss with penalties, and losses as metrics.
using autoencoder = sequential<input<37>, dense<29, tanh_activation, kernel_regularizer<l1_l2<0.003_r, 0.007_r>>>,
                               dense<37, sigmoid, kernel_regularizer<l2<0.01_r>>>>;
using dense_metrics =
    type_list<mean_squared_error, mean_absolute_error, huber<0.3_r>, binary_crossentropy<>, binary_crossentropy<from_logits>,
              binary_crossentropy<label_smoothing<0.1_r>>, categorical_crossentropy<>, categorical_crossentropy<from_logits>,
              categorical_crossentropy<label_smoothing<0.1_r>>, categorical_accuracy, binary_accuracy<>>;

/// FNV-1a of the bytes of elements.
class hash {
  std::uint64_t value_ = 14695981039346656037u;

 public:
  template <class T>
  void add(std::span<const T> values) {
    for (const std::byte b : std::as_bytes(values)) value_ = (value_ ^ std::uint64_t(b)) * 1099511628211u;
  }
  void add(double value) { add(std::span<const double>(&value, 1)); }
  void print(const std::string& name, double value) const {
    std::printf("%s %016" PRIx64 " %.6f\n", name.c_str(), value_, value);
  }
};

template <class T>
std::vector<T> random_numbers(int count, std::uint64_t key) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(T(philox{key}.uniform(std::uint64_t(i))));
  return values;
}

/// Prints the parameters after some steps, and all values that are reported during them.
template <class Network, class Loss = sparse_categorical_crossentropy<>,
          class Metrics = type_list<sparse_categorical_crossentropy<>>>
void train(const std::string& name) {
  using P = program<Network, Loss, adam, Metrics>;
  constexpr int count = 12, size = Network::input_shape.size();
  synchronous_executor<P, cpu> executor(adam{}, 1, {.threads = 1});
  executor.prepare(count, purpose::training), executor.prepare(count, purpose::inference);
  const std::vector<float> x = random_numbers<float>(count * size, 3);
  std::vector<std::int32_t> labels(count);
  for (int n = 0; n < count; ++n) labels[std::size_t(n)] = n % 10;
  const samples<float> batch{x.data(), {labels.data(), x.data()}, count};
  hash parameters, reported[metric_sums<P>().size()];
  metric_sums<P> last;
  const auto report = [&](const metric_sums<P>& all) {
    for (std::size_t k = 0; k < all.size(); ++k) reported[k].add(all[k].mean());
    last = all;
  };
  for (int step = 0; step < 3; ++step) report(executor.train_step(batch));
  parameters.add(std::span<const float>(executor.parameters()));
  parameters.print(name, last[0].mean());
  report(executor.evaluate_step(batch));
  for (std::size_t k = 0; k < last.size(); ++k) reported[k].print(name + "/reported/" + std::to_string(k), last[k].mean());
}

/// Prints the loss and its gradient for some predictions, after an activation or alone.
template <class P, shape In, class L, class Operation = L>
void measure(const char* activation) {
  using T = typename P::value_type;
  using K = typename find_kernel<cpu, Operation, P, In>::type;
  constexpr int count = 3, size = In.size(), n = count * size;
  constexpr auto in_vectors = [](int elements) { return std::size_t(simd::aligned_size<T>(elements + 1)); };
  const std::vector<T> x = random_numbers<T>(n, 5), truth = random_numbers<T>(n, 6);
  const std::int32_t labels[count] = {4, 0, 2};
  arena<T> y(in_vectors(n)), dx(in_vectors(n)),
      scratch(in_vectors(traits_of_kernel<K>.scratch + count * traits_of_kernel<K>.scratch_per_sample));
  double loss[2] = {};
  operands<T> o;
  o.count = count, o.x[0] = x.data(), o.y = y.data(), o.dx[0] = dx.data(), o.scratch = scratch.data(), o.loss = loss;
  o.targets = truth.data(), o.labels = labels;
  K::forward(o), K::backward(o);
  hash h;
  h.add(loss[0]), h.add(std::span<const T>(dx.span()));
  h.print(std::string(activation) + L::name + '/' + std::to_string(size) + '/' + std::to_string(sizeof(T)), loss[0]);
}

template <class P, shape In>
void measure_losses() {
  measure<P, In, mean_squared_error>("");
  measure<P, In, mean_absolute_error>("");
  measure<P, In, huber<0.3_r>>("");
  measure<P, In, mean_absolute_percentage_error>("");
  measure<P, In, mean_squared_logarithmic_error>("");
  measure<P, In, log_cosh>("");
  measure<P, In, poisson>("");
  measure<P, In, kl_divergence>("");
  measure<P, In, hinge>("");
  measure<P, In, categorical_hinge>("");
  measure<P, In, cosine_similarity>("");
  measure<P, In, binary_focal_crossentropy<apply_class_balancing>>("");
  measure<P, In, binary_focal_crossentropy<from_logits, focal_gamma<3_r>>>("logit_");
  measure<P, In, categorical_focal_crossentropy<>>("");
  measure<P, In, categorical_focal_crossentropy<from_logits, label_smoothing<0.1_r>>>("logit_");
  using binary = binary_crossentropy<label_smoothing<0.1_r>>;
  measure<P, In, binary>("");
  measure<P, In, binary_crossentropy<from_logits>>("logit_");
  measure<P, In, binary, fused<sigmoid, binary>>("sigmoid_");
  using categorical = categorical_crossentropy<label_smoothing<0.1_r>>;
  measure<P, In, categorical>("");
  measure<P, In, categorical_crossentropy<from_logits>>("logit_");
  measure<P, In, categorical, fused<softmax, categorical>>("softmax_");
  using sparse = sparse_categorical_crossentropy<>;
  measure<P, In, sparse>("");
  measure<P, In, sparse, fused<softmax, sparse>>("softmax_");
}

void resize(data::resize_method method) {
  constexpr int channels = 3, height = 37, width = 29, new_height = 13, new_width = 61;
  const std::vector<float> in = random_numbers<float>(height * width * channels, 7);
  std::vector<float> out(new_height * new_width * channels);
  data::resize(data::pixels<const float, channels>{in.data(), height, width, width * channels},
               data::pixels<float, channels>{out.data(), new_height, new_width, new_width * channels}, method);
  hash h;
  h.add(std::span<const float>(out));
  h.print("resize/" + std::to_string(int(method)), std::accumulate(out.begin(), out.end(), 0.));
}

/// Rotates and moves an image.
void turn(data::interpolation how) {
  constexpr shape image{12, 12, 1};
  const std::vector<float> in = random_numbers<float>(image.size(), 8);
  std::vector<float> out(in.size());
  hash h;
  for (int k = 0; k < 40; ++k) {
    data::affine_matrix matrix = data::detail::draw_rotation{{-0.2, 0.2}}({philox{9}.uniform(std::uint64_t(k)), 0}, image);
    matrix.a2 += 0.37;
    data::affine_transform(tensor<const float, image>{in.data()}, matrix, tensor<float, image>{out.data()},
                           {.fill_mode = data::fill_mode::reflect, .interpolation = how});
    h.add(std::span<const float>(out));
  }
  h.print("turn/" + std::to_string(int(how)), std::accumulate(out.begin(), out.end(), 0.));
}

}  // namespace

int main() {
  std::printf("arithmetic %016" PRIx64 " 0\n", detail::hash_of(detail::text_of_arithmetic()));
  train<cnn>("cnn");
  train<mlp>("mlp");
  train<residual_net>("residual");
  train<autoencoder, mean_squared_error, dense_metrics>("autoencoder");
  measure_losses<precision::f32, shape{37}>();
  measure_losses<precision::f64, shape{6}>();
  for (const auto method : {data::resize_method::bilinear, data::resize_method::bicubic, data::resize_method::area})
    resize(method);
  for (const auto how : {data::interpolation::nearest, data::interpolation::bilinear}) turn(how);
}
