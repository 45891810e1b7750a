// Definitions of pooling.hpp.
#pragma once
#include <algorithm>

namespace strata::stablehlo {

namespace detail {

STRATA_FUNCTION window_2d window_of(const pool_settings& s, const extents& x) {
  const shape in{int(x[1]), int(x[2]), int(x[3])};
  const window_axis axes[] = {s.vertical(in), s.horizontal(in)};
  window_2d w;
  for (std::size_t i = 0; i < 2; ++i) {
    w.size[i] = axes[i].kernel, w.stride[i] = axes[i].stride, w.low[i] = axes[i].padding();
    w.high[i] =
        axes[i].same ? std::max(0, (axes[i].out() - 1) * axes[i].stride + axes[i].reach() - axes[i].in) - axes[i].padding() : 0;
  }
  return w;
}

/// (rows, H', KH, W', KW, C): each window of an image, whose last rows and columns are in no window.
struct separate_windows {
  extents split, used;
  separate_windows(const extents& x, const extents& y, const window_2d& w)
      : split{x[0], y[1], w.size[0], y[2], w.size[1], x[3]}, used{x[0], y[1] * w.size[0], y[2] * w.size[1], x[3]} {}

  static bool exist(const window_2d& w) {
    return w.size[0] == w.stride[0] && w.size[1] == w.stride[1] && w.low[0] == 0 && w.low[1] == 0 && w.high[0] == 0 &&
           w.high[1] == 0;
  }
  /// The first elements of all windows, then the second ones, and so on: each of the shape of the result.
  std::vector<tensor> taps(tensor x) const {
    const tensor all = reshape(slice(x, {0, 0, 0, 0}, used), split);
    std::vector<tensor> out;
    for (std::int64_t i = 0; i < split[2]; ++i)
      for (std::int64_t k = 0; k < split[4]; ++k)
        out.push_back(reshape(slice(all, {0, 0, i, 0, k, 0}, {split[0], split[1], i + 1, split[3], k + 1, split[5]}),
                              {split[0], split[1], split[3], split[5]}));
    return out;
  }
  /// The image whose taps these are, with zeros where there is no window.
  tensor image_of(const std::vector<tensor>& taps, const extents& x) const {
    std::vector<tensor> lines;
    for (std::int64_t i = 0; i < split[2]; ++i) {
      std::vector<tensor> line;
      for (std::int64_t k = 0; k < split[4]; ++k)
        line.push_back(reshape(taps[std::size_t(i * split[4] + k)], {split[0], split[1], 1, split[3], 1, split[5]}));
      lines.push_back(concatenate(line, 4));
    }
    const tensor image = reshape(concatenate(lines, 2), used);
    return used == x ? image : pad(image, {0, 0, 0, 0}, {0, x[1] - used[1], x[2] - used[2], 0}, {0, 0, 0, 0});
  }
};

STRATA_FUNCTION tensor first_of_largest(tensor x, tensor largest, const extents& axes) {
  // The place in the window, counted row by row.
  const tensor_type index{element::i32, x.extents()};
  tensor place;
  std::int64_t step = 1;
  for (std::size_t i = axes.size(); i-- > 0; step *= x.extents()[std::size_t(axes[i])]) {
    const tensor along = iota(x.in(), index, int(axes[i])), part = step == 1 ? along : along * double(step);
    place = place ? place + part : part;
  }
  const tensor is_largest = compare("EQ", x, largest);
  const tensor candidate = select(is_largest, place, filled(double(step), place));
  const tensor first = reduce(reduction::minimum, candidate, axes);
  extents kept;
  for (int i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) kept.push_back(i);
  const tensor spread = x.in().operation("broadcast_in_dim", {first}, index, "broadcast_dimensions = " + array_text(kept));
  return convert(compare("EQ", candidate, spread), x.type().of);
}

STRATA_FUNCTION tensor max_pool_forward(operation_call& c, const pool_settings& s) {
  const window_2d w = window_of(s, c.x[0].extents());
  if (c.step.platform.pools_by_reduce_window || !separate_windows::exist(w)) return reduce_window(reduction::maximum, c.x[0], w);
  tensor largest;
  for (const tensor tap : separate_windows(c.x[0].extents(), c.out, w).taps(c.x[0]))
    largest = largest ? binary("maximum", largest, tap) : tap;
  return largest;
}
STRATA_FUNCTION void max_pool_backward(operation_call& c, const pool_settings& s) {
  const extents& x = c.x[0].extents();
  const window_2d w = window_of(s, x);
  if (c.step.platform.pools_by_reduce_window || !separate_windows::exist(w)) return c.set_dx(select_and_scatter(c.x[0], c.dy, w));
  const separate_windows windows(x, c.out, w);
  std::vector<tensor> of_taps;
  tensor found;  // whether an earlier element of the window is the largest
  for (const tensor tap : windows.taps(c.x[0])) {
    const tensor is_largest = compare("EQ", tap, c.y);
    of_taps.push_back(select(found ? binary("and", is_largest, unary("not", found)) : is_largest, c.dy, filled(0, c.dy)));
    found = found ? binary("or", found, is_largest) : is_largest;
  }
  c.set_dx(windows.image_of(of_taps, x));
}

/// For each window the number of its elements that lie in the image: (H', W'), spread over the type of `like`.
STRATA_FUNCTION tensor elements_in_windows(tensor like, const pool_settings& s, const extents& x) {
  const shape in{int(x[1]), int(x[2]), int(x[3])};
  const window_axis axes[] = {s.vertical(in), s.horizontal(in)};
  tensor counts[2];
  for (std::size_t i = 0; i < 2; ++i) {
    std::string list = "[";
    for (int k = 0; k < axes[i].out(); ++k) {
      const int inside = std::min(axes[i].begin(k) + axes[i].kernel, axes[i].in) - std::max(axes[i].begin(k), 0);
      list += (k > 0 ? ", " : "") + number_text(inside, like.type().of);
    }
    const tensor each = like.in().constant(list + "]", {like.type().of, {axes[i].out()}});
    counts[i] = broadcast(each, like.extents(), {std::int64_t(i) + 1});
  }
  return counts[0] * counts[1];
}
STRATA_FUNCTION tensor average_pool_forward(operation_call& c, const pool_settings& s) {
  const tensor sums = reduce_window(reduction::add, c.x[0], window_of(s, c.x[0].extents()));
  return sums / elements_in_windows(sums, s, c.x[0].extents());
}
STRATA_FUNCTION void average_pool_backward(operation_call& c, const pool_settings& s) {
  const extents& x = c.x[0].extents();
  const window_2d w = window_of(s, x);
  const tensor share = c.dy / elements_in_windows(c.dy, s, x);
  // Each element of the image takes the shares of all windows that it is in: windows of the same size over spread-out shares.
  extents low(4), high(4), inner(4);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t out = share.extents()[i + 1];
    low[i + 1] = w.size[i] - 1 - w.low[i];
    high[i + 1] = x[i + 1] - 1 - (out - 1) * w.stride[i] + w.low[i];
    inner[i + 1] = w.stride[i] - 1;
  }
  window_2d every;
  every.size[0] = w.size[0], every.size[1] = w.size[1];
  c.set_dx(reduce_window(reduction::add, pad(share, low, high, inner), every));
}

}  // namespace detail

STRATA_FUNCTION tensor emission<global_average_pool2d>::forward(operation_call& c) {
  return reduce(reduction::add, c.x[0], {1, 2}) / double(c.x[0].extent(1) * c.x[0].extent(2));
}
STRATA_FUNCTION void emission<global_average_pool2d>::backward(operation_call& c) {
  const extents& x = c.x[0].extents();
  c.set_dx(broadcast(c.dy / double(x[1] * x[2]), x, {0, 3}));
}

STRATA_FUNCTION tensor emission<global_max_pool2d>::forward(operation_call& c) {
  return reduce(reduction::maximum, c.x[0], {1, 2});
}
STRATA_FUNCTION void emission<global_max_pool2d>::backward(operation_call& c) {
  const extents& x = c.x[0].extents();
  c.set_dx(detail::first_of_largest(c.x[0], broadcast(c.y, x, {0, 3}), {1, 2}) * broadcast(c.dy, x, {0, 3}));
}

}  // namespace strata::stablehlo
