// Operations on a GPU that compute each element by itself: activations, dropout, joins, normalization, padding, enlarging.
#pragma once
#include <cmath>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/layers/columns.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/elementwise_join.hpp>
#include <strata/layers/normalization.hpp>
#include <strata/layers/up_sampling2d.hpp>
#include <strata/layers/zero_padding2d.hpp>

namespace strata {

namespace machine {

template <class A, class T>
struct activate {
  const T* x;
  T* y;
  constexpr void operator()(long i) const { y[i] = activation_function<A>::value(x[i]); }
};
template <class A, class T>
struct activation_gradient {
  const T *x, *y, *dy;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    using function = activation_function<A>;
    dx.store(i, dy[i] * function::derivative(function::uses_input ? x[i] : T{}, function::uses_output ? y[i] : T{}));
  }
};

template <class T>
struct copy_elements {
  const T* from;
  T* to;
  constexpr void operator()(long i) const { to[i] = from[i]; }
};

/// to = from * mask: forward and backward.
template <class Dropout, class T, shape In>
struct drop {
  const T* from;
  gradient_place<T> to;
  philox random;
  const philox* random_at;  // null: `random`
  std::int64_t first;
  constexpr void operator()(long i) const {
    const int element = Dropout::template noise_of<In>(int(i % In.size()));
    to.store(i, Dropout::keeps(random_at ? *random_at : random, first + i / In.size(), element)
                    ? from[i] * T(1 / (1 - Dropout::rate))
                    : T{});
  }
};

template <class Join, class T, int Branches>
struct join {
  const T* x[Branches];
  T* y;
  constexpr void operator()(long i) const {
    T each[Branches] = {};
    for (int k = 0; k < Branches; ++k) each[k] = x[k][i];
    y[i] = Join::template value<T>(each);
  }
};
template <class Join, class T, int Branches>
struct join_gradient {
  const T* x[Branches];
  const T* dy;
  gradient_place<T> dx[Branches];
  constexpr void operator()(long i) const {
    T each[Branches] = {}, gradients[Branches] = {};
    for (int k = 0; Join::reads_input && k < Branches; ++k) each[k] = x[k][i];
    Join::template gradients<T>(each, dy[i], gradients);
    for (int k = 0; k < Branches; ++k)
      if (dx[k].is_wanted()) dx[k].store(i, gradients[k]);
  }
};

/// One branch of a concatenation: its channels are [First, First + C) of `All`.
template <class T, int First, int C, int All>
struct put_branch {
  const T* x;
  T* y;
  constexpr void operator()(long i) const { y[i / C * All + First + i % C] = x[i]; }
};
template <class T, int First, int C, int All>
struct take_branch {
  const T* dy;
  gradient_place<T> dx;
  constexpr void operator()(long i) const { dx.store(i, dy[i / C * All + First + i % C]); }
};

template <column_settings S, class T, int All>
struct copy_columns {
  const T* x;
  T* y;
  constexpr void operator()(long i) const { y[i] = x[i / S.count * All + S.first + i % S.count]; }
};
template <column_settings S, class T, int All>
struct columns_gradient {
  const T* dy;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    const long column = i % All - S.first;
    if (column >= 0 && column < S.count)
      dx.store(i, dy[i / All * S.count + column]);
    else if (!dx.adds)
      dx.store(i, T{});
  }
};

template <class T, int C>
struct normalize {
  const T *x, *mean, *variance;
  T* y;
  constexpr void operator()(long i) const { y[i] = (x[i] - mean[i % C]) / deviation(variance[i % C]); }
  static constexpr T deviation(T v) { return T(std::sqrt(std::max(double(v), double(normalization::least_variance)))); }
};
template <class T, int C>
struct normalize_gradient {
  const T *dy, *variance;
  gradient_place<T> dx;
  constexpr void operator()(long i) const { dx.store(i, dy[i] / normalize<T, C>::deviation(variance[i % C])); }
};

template <padding_settings S, class T, shape In, shape Out>
struct pad {
  const T* x;
  T* y;
  constexpr void operator()(long i) const {
    const long n = i / Out.size();
    const int at = int(i % Out.size()), channel = at % Out[2], column = at / Out[2] % Out[1] - S.left,
              row = at / Out[2] / Out[1] - S.top;
    const bool inside = row >= 0 && row < In[0] && column >= 0 && column < In[1];
    y[i] = inside ? x[n * In.size() + (long(row) * In[1] + column) * In[2] + channel] : T{};
  }
};
template <padding_settings S, class T, shape In, shape Out>
struct pad_gradient {
  const T* dy;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    const long n = i / In.size();
    const int at = int(i % In.size()), channel = at % In[2], column = at / In[2] % In[1] + S.left,
              row = at / In[2] / In[1] + S.top;
    const bool inside = row >= 0 && row < Out[0] && column >= 0 && column < Out[1];
    dx.store(i, inside ? dy[n * Out.size() + (long(row) * Out[1] + column) * Out[2] + channel] : T{});
  }
};

template <up_sampling_settings S, class T, shape In, shape Out>
struct enlarge {
  const T* x;
  T* y;
  constexpr void operator()(long i) const {
    const int at = int(i % Out.size()), c = at % Out[2];
    const auto down = up_sampling<S>::row(In, at / Out[2] / Out[1]), across = up_sampling<S>::column(In, at / Out[2] % Out[1]);
    const T* const image = x + i / Out.size() * In.size() + c;
    T sum{};
    const auto part = [&](int row, int column, double weight) {
      if (weight != 0) sum += T(weight) * image[(long(row) * In[1] + column) * In[2]];
    };
    part(down.low, across.low, (1 - down.weight) * (1 - across.weight));
    part(down.low, across.high, (1 - down.weight) * across.weight);
    part(down.high, across.low, down.weight * (1 - across.weight));
    part(down.high, across.high, down.weight * across.weight);
    y[i] = sum;
  }
};
/// Adds up all pixels that a pixel is a part of: they are at most one window of it away.
template <up_sampling_settings S, class T, shape In, shape Out>
struct enlarge_gradient {
  const T* dy;
  gradient_place<T> dx;

  static constexpr double share(const strata::detail::blended_pixel& of, int pixel) {
    return (of.low == pixel ? 1 - of.weight : 0) + (of.high == pixel ? of.weight : 0);
  }
  constexpr void operator()(long i) const {
    constexpr int height = S.sampling_height, width = S.sampling_width;
    const int at = int(i % In.size()), c = at % In[2], row = at / In[2] / In[1], column = at / In[2] % In[1];
    const T* const image = dy + i / In.size() * Out.size() + c;
    T sum{};
    for (int j = std::max((row - 1) * height, 0); j < std::min((row + 2) * height, Out[0]); ++j)
      if (const double down = share(up_sampling<S>::row(In, j), row); down != 0)
        for (int k = std::max((column - 1) * width, 0); k < std::min((column + 2) * width, Out[1]); ++k)
          if (const double across = share(up_sampling<S>::column(In, k), column); across != 0)
            sum += T(down * across) * image[(long(j) * Out[1] + k) * Out[2]];
    dx.store(i, sum);
  }
};

}  // namespace machine

namespace core {
/// x, y, dy, dx: (count, shape of the input).
template <elementwise_activation A, class P, shape In>
struct kernel<cuda, A, P, In> {
  using T = typename P::value_type;
  using function = activation_function<A>;
  static constexpr kernel_traits traits{.reads_input = function::uses_input, .reads_output = function::uses_output};

  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * In.size(), machine::activate<A, T>{o.x[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    if (dx.is_wanted())
      machine::for_each_index(q, long{o.count} * In.size(), machine::activation_gradient<A, T>{o.x[0], o.y, o.dy, dx});
  }
};

/// x, y, dy, dx: (count, shape of the input).
template <decimal Rate, shape Noise, class P, shape In>
struct kernel<cuda, dropout<Rate, Noise>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};

  static void forward(machine::queue q, const operands<T>& o) { run(q, o, o.x[0], {o.y, false, 0}); }
  static void infer(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * In.size(), machine::copy_elements<T>{o.x[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    if (o.dx[0]) run(q, o, o.dy, machine::gradient_place<T>::of_input(o, 0));
  }

 private:
  static void run(const machine::queue& q, const operands<T>& o, const T* from, machine::gradient_place<T> to) {
    machine::for_each_index(q, long{o.count} * In.size(),
                            machine::drop<dropout<Rate, Noise>, T, In>{from, to, o.random, o.random_at, o.first_sample});
  }
};

/// x[k], y, dy, dx[k]: (count, shape of each branch).
template <elementwise_join Join, class P, shape First, shape... Rest>
struct kernel<cuda, Join, P, First, Rest...> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = Join::reads_input};
  static constexpr int branches = 1 + sizeof...(Rest);

  static void forward(machine::queue q, const operands<T>& o) {
    machine::join<Join, T, branches> all{{}, o.y};
    std::copy_n(o.x, branches, all.x);
    machine::for_each_index(q, long{o.count} * First.size(), all);
  }
  static void backward(machine::queue q, const operands<T>& o) {
    machine::join_gradient<Join, T, branches> all{{}, o.dy, {}};
    std::copy_n(o.x, branches, all.x);
    for (int k = 0; k < branches; ++k) all.dx[k] = machine::gradient_place<T>::of_input(o, k);
    machine::for_each_index(q, long{o.count} * First.size(), all);
  }
};

/// x[k]: (count, ..., C_k); y: (count, ..., sum of C_k).
template <class P, shape First, shape... Rest>
struct kernel<cuda, stack_of_branches, P, First, Rest...> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr int all = (First.last() + ... + Rest.last());

  static void forward(machine::queue q, const operands<T>& o) {
    for_each_branch(o, [&]<int Before, int C>(int k, long size) {
      machine::for_each_index(q, size, machine::put_branch<T, Before, C, all>{o.x[k], o.y});
    });
  }
  static void backward(machine::queue q, const operands<T>& o) {
    for_each_branch(o, [&]<int Before, int C>(int k, long size) {
      if (o.dx[k])
        machine::for_each_index(q, size,
                                machine::take_branch<T, Before, C, all>{o.dy, machine::gradient_place<T>::of_input(o, k)});
    });
  }

 private:
  static constexpr int branches = 1 + sizeof...(Rest);
  static constexpr int channels[branches] = {First.last(), Rest.last()...};
  static constexpr int before(int k) {
    int sum = 0;
    for (int i = 0; i < k; ++i) sum += channels[i];
    return sum;
  }
  template <class F>
  static void for_each_branch(const operands<T>& o, F&& f) {
    const long pixels = long{o.count} * (First.size() / First.last());
    [&]<int... K>(std::integer_sequence<int, K...>) {
      (f.template operator()<before(K), channels[K]>(K, pixels * channels[K]), ...);
    }(std::make_integer_sequence<int, branches>{});
  }
};

/// x, y, dy, dx: (count, ..., C); mean, variance: (C).
template <class P, shape In>
struct kernel<cuda, normalization, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};

  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * In.size(), machine::normalize<T, In.last()>{o.x[0], o.w[0], o.w[1], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    if (dx.is_wanted())
      machine::for_each_index(q, long{o.count} * In.size(), machine::normalize_gradient<T, In.last()>{o.dy, o.w[1], dx});
  }
};

/// x: (count, ..., C); y: (count, ..., S.count).
template <column_settings S, class P, shape In>
struct kernel<cuda, column_slice<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};

  static void forward(machine::queue q, const operands<T>& o) {
    constexpr long size = column_slice<S>::output_shape(In).value.size();
    machine::for_each_index(q, o.count * size, machine::copy_columns<S, T, In.last()>{o.x[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    if (dx.is_wanted())
      machine::for_each_index(q, long{o.count} * In.size(), machine::columns_gradient<S, T, In.last()>{o.dy, dx});
  }
};

/// x: (count, H, W, C); y: (count, top + H + bottom, left + W + right, C).
template <padding_settings S, class P, shape In>
struct kernel<cuda, zero_padding<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr shape Out = S.output_shape(In).value;

  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * Out.size(), machine::pad<S, T, In, Out>{o.x[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    if (dx.is_wanted()) machine::for_each_index(q, long{o.count} * In.size(), machine::pad_gradient<S, T, In, Out>{o.dy, dx});
  }
};

/// x: (count, H, W, C); y: (count, height * H, width * W, C).
template <up_sampling_settings S, class P, shape In>
struct kernel<cuda, up_sampling<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr shape Out = up_sampling<S>::output_shape(In).value;

  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * Out.size(), machine::enlarge<S, T, In, Out>{o.x[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    if (dx.is_wanted()) machine::for_each_index(q, long{o.count} * In.size(), machine::enlarge_gradient<S, T, In, Out>{o.dy, dx});
  }
};
}  // namespace core

}  // namespace strata
