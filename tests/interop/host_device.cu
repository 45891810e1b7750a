// Rules, losses and metrics in kernels: what is generic over its value is constexpr. test_host_device.py compiles it.
#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/metrics/accuracy.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/clipping.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/reference/activation_functions.hpp>
using namespace strata;
using namespace strata::core;
__global__ void update(adam_rule<float> rule, sample_mean<float> mean, float* w, const float* sum, float* m, float* v, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) rule(w[i], clip_by_value(mean.of(sum[i]), 1.f), m[i], v[i]);
}
__global__ void update_ftrl(ftrl_power_rule<float> rule, sample_mean<float> mean, float* w, const float* sum, float* n, float* z) {
  rule(w[threadIdx.x], mean.of(sum[threadIdx.x]), n[threadIdx.x], z[threadIdx.x]);
}
__global__ void update_lion(lion_rule<float> rule, sample_mean<float> mean, float* w, const float* sum, float* m) {
  rule(w[threadIdx.x], mean.of(sum[threadIdx.x]), m[threadIdx.x]);
}
template <class Loss> __global__ void loss(const float* x, const float* y, float* dx, float* out, int size) {
  const std::span<const float> p(x, std::size_t(size)), t(y, std::size_t(size));
  out[0] = Loss::value(p, t);
  Loss::gradient(p, t, std::span<float>(dx, std::size_t(size)));
}
template __global__ void loss<mean_squared_error>(const float*, const float*, float*, float*, int);
template __global__ void loss<huber<>>(const float*, const float*, float*, float*, int);
__global__ void classes(const float* x, const std::int32_t* y, float* dx, float* out, int size) {
  const std::span<const float> p(x, std::size_t(size));
  out[0] = sparse_categorical_crossentropy<>::value(p, y[0]);
  out[1] = float(accuracy::measure(p, y[0]));
  sparse_categorical_crossentropy<>::gradient(p, y[0], std::span<float>(dx, std::size_t(size)));
}
