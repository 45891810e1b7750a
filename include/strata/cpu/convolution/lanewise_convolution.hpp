// Depthwise convolutions and those with few channels in a group, image by image.
#pragma once
#include <strata/cpu/convolution/geometry.hpp>
#include <strata/cpu/convolution/lanewise.hpp>

namespace strata::simd {

template <conv_settings S, shape In, class T>
struct lanewise_convolution {
  using at = convolution_geometry<S, In>;
  static constexpr int L = lanes<T>, C = at::C, F = at::F, Cg = at::Cg, Fg = at::Fg, KH = at::KH, KW = at::KW;

  /// Matrix products would leave most lanes empty, or have nothing to loop over.
  static constexpr bool pays(int depth, int many) { return at::groups > 1 && (many < 12 || depth < 4); }
  static constexpr bool forward_pays = pays(Cg, Fg), input_pays = pays(Fg, Cg);

  /// Neighbouring outputs read neighbouring inputs, so nothing must be spread.
  static constexpr bool depthwise = Cg == 1 && Fg == 1;
  static constexpr int for_x = depthwise ? (at::x.needed() ? at::x.pixels() * C : 0) : at::x.pixels() * Cg * L;
  static constexpr int for_dz = depthwise ? (at::dz.needed() ? at::dz.pixels() * F : 0) : at::dz.pixels() * Fg * L;
  static constexpr int scratch = aligned_size<T>(std::max(forward_pays ? for_x : 0, input_pays ? for_dz : 0));

  /// A kernel row is computed as a whole if its taps are neighbours and few; otherwise tap by tap.
  static constexpr bool whole_rows(int taps, int step) { return taps <= 7 && at::DW == 1 && step <= 2; }

  /// Calls compute(x, elements of a pixel of x, first output channel, channels, first line, lines) for all output channels and
  /// all lines, in strips whose frames stay in the cache. A line of outputs reads `lines_read` lines of the frame; the next one
  /// begins `step` lines further down.
  template <int From, int Depth, int Many, class Compute>
  static void each_part(const T* image, const frame& f, int lines, int step, int lines_read, T* buffer, Compute&& compute) {
    constexpr int to = From / Depth * Many, pixel = depthwise ? From : Depth * L;
    if (depthwise && !f.needed()) return compute(image, pixel, 0, to, 0, lines);
    const int fitting = 96 * 1024 / int(sizeof(T)) / (f.outer_width * pixel),
              limit = std::max((fitting - lines_read) / step + 1, 2 * lines_read), strips = (lines + limit - 1) / limit,
              most = (lines + strips - 1) / strips;
    for (int first = 0; first < (depthwise ? 1 : to); first += L)
      for (int line = 0; line < lines; line += most) {
        const int count = std::min(most, lines - line), used = depthwise ? to : std::min(L, to - first);
        const int begin = std::max(0, line * step - f.top),
                  end = std::min(f.height, (line + count - 1) * step + lines_read - f.top);
        const frame part{end - begin,  f.width, std::max(0, f.top - line * step), f.left, (count - 1) * step + lines_read,
                         f.outer_width};
        if (end <= begin)
          std::memset(buffer, 0, sizeof(T) * static_cast<std::size_t>(part.pixels() * pixel));
        else if constexpr (depthwise)
          put_into_frame(image + std::ptrdiff_t(begin) * f.width * From, part, From, buffer);
        else
          spread(image + std::ptrdiff_t(begin) * f.width * From, part, From, first, used, Many, Depth, buffer);
        compute(buffer, pixel, first, used, line, count);
      }
  }

  static constexpr bool rows = whole_rows(KW, at::SW);
  static constexpr int width = rows ? KW : 1, stride = rows ? at::SW : 1;
  static constexpr int reach = (KH - 1) * at::DH + 1;
  /// Some lines of outputs, for output channels from `first` on. `pixel`: the elements of a pixel of x.
  static lanewise<T> geometry(const T* x, int pixel, int first, int line, int lines, T* w, T* y, int* run_at) {
    constexpr int runs = rows ? KH : at::taps;
    for (int i = 0; i < runs; ++i)
      run_at[i] = ((rows ? i : i / KW) * at::DH * at::x.outer_width + (rows ? 0 : i % KW * at::DW)) * pixel;
    return {.lines = lines,
            .columns = at::OW,
            .x = x,
            .x_column = rows ? pixel : at::SW * pixel,
            .x_line = std::ptrdiff_t(at::SH) * at::x.outer_width * pixel,
            .run_at = run_at,
            .runs = runs,
            .depth = Cg,
            .x_depth = depthwise ? C : L,
            .w = w + first,
            .w_run = (rows ? KW : 1) * Cg * F,
            .w_tap = Cg * F,
            .w_depth = F,
            .y = y + line * at::OW * F + first,
            .y_column = F,
            .y_line = at::OW * F};
  }

  template <class Activation>
  static void forward(const T* x, const T* w, const T* bias, T* y, T* buffer) {
    each_part<C, Cg, Fg>(x, at::x, at::OH, at::SH, reach, buffer,
                         [&](const T* part, int pixel, int first, int used, int line, int lines) {
                           int run_at[at::taps];
                           lanewise<T> p = geometry(part, pixel, first, line, lines, const_cast<T*>(w), y, run_at);
                           p.bias = bias ? bias + first : nullptr;
                           lanewise_forward<width, stride, Activation>(p, used);
                         });
  }

  static void weight_gradient(const T* x, const T* dz, T* dw, bool add, T* buffer) {
    each_part<C, Cg, Fg>(x, at::x, at::OH, at::SH, reach, buffer,
                         [&](const T* part, int pixel, int first, int used, int line, int lines) {
                           int run_at[at::taps];
                           lanewise<T> p = geometry(part, pixel, first, line, lines, dw, const_cast<T*>(dz), run_at);
                           p.add = add || line > 0;
                           lanewise_weights<width, stride>(p, used);
                         });
  }

  /// The taps that read the inputs of one phase, by ascending offset in dz: rows of taps times columns.
  struct phase_taps {
    int rows = 0, columns = 0, row_tap[KH]{}, column_tap[KW]{}, row_at[KH]{}, column_at[KW]{};
  };
  static constexpr phase_taps taps_of(int phase) {
    phase_taps t;
    for (int a = KH - 1; a >= 0; --a)
      if (at::residue(a, at::DH, at::SH, at::top) == phase / at::SW) {
        t.row_at[t.rows] = at::dz.top + at::shift(a, at::DH, at::SH, at::top);
        t.row_tap[t.rows++] = a;
      }
    for (int b = KW - 1; b >= 0; --b)
      if (at::residue(b, at::DW, at::SW, at::left) == phase % at::SW) {
        t.column_at[t.columns] = at::dz.left + at::shift(b, at::DW, at::SW, at::left);
        t.column_tap[t.columns++] = b;
      }
    return t;
  }

  /// [phase][row][column][filter of the group][channel]
  static void derive(const T* w, T* to) {
    for (int f = 0; f < at::phases; ++f) {
      const phase_taps t = taps_of(f);
      for (int i = 0; i < t.rows * t.columns; ++i) {
        const T* const from = w + (t.row_tap[i / t.columns] * KW + t.column_tap[i % t.columns]) * Cg * F;
        for (int j = 0; j < Fg; ++j, to += C)
          for (int g = 0; g < at::groups; ++g)
            for (int c = 0; c < Cg; ++c) to[g * Cg + c] = from[c * F + g * Fg + j];
      }
    }
  }

  static constexpr int input_reach = [] {
    int most = 1;
    for (int f = 0; f < at::phases; ++f)
      for (const phase_taps t = taps_of(f); const int at : t.row_at) most = std::max(most, at + 1);
    return most;
  }();
  static void input_gradient(const T* dz, const T* w, T* dx, bool add, T* buffer) {
    each_part<F, Fg, Cg>(dz, at::dz, at::lines(at::H, 0, at::SH), 1, input_reach, buffer,
                         [&](const T* part, int pixel, int first, int used, int line, int lines) {
                           const T* weights = w;
                           unroll<at::phases>([&](auto f) {
                             phase<f>(part, pixel, first, used, line, lines, weights, dx, add);
                             weights += taps_of(f).rows * taps_of(f).columns * Fg * C;
                           });
                         });
  }

  template <int Phase>
  static void phase(const T* dz, int pixel, int first, int used, int line, int count, const T* w, T* dx, bool add) {
    constexpr phase_taps t = taps_of(Phase);
    constexpr int row = Phase / at::SW, column = Phase % at::SW, taps = t.rows * t.columns;
    constexpr int columns = at::lines(at::W, column, at::SW);
    constexpr bool whole = taps > 0 && whole_rows(t.columns, 1);
    constexpr int together = whole ? t.columns : 1, runs = taps / together;
    const int lines = std::min(line + count, at::lines(at::H, row, at::SH)) - line;
    if (lines <= 0 || columns == 0 || (taps == 0 && add)) return;
    int run_at[runs + 1];
    for (int i = 0; i < runs; ++i) {
      const int tap = i * together, across = std::max(1, t.columns);
      run_at[i] = (t.row_at[tap / across] * at::dz.outer_width + t.column_at[tap % across]) * pixel;
    }
    lanewise_forward<together, 1, linear>(lanewise<T>{.lines = lines,
                                                      .columns = columns,
                                                      .x = dz,
                                                      .x_column = pixel,
                                                      .x_line = std::ptrdiff_t(at::dz.outer_width) * pixel,
                                                      .run_at = run_at,
                                                      .runs = runs,
                                                      .depth = Fg,
                                                      .x_depth = depthwise ? F : L,
                                                      .w = const_cast<T*>(w) + first,
                                                      .w_run = together * Fg * C,
                                                      .w_tap = Fg * C,
                                                      .w_depth = C,
                                                      .y = dx + ((line * at::SH + row) * at::W + column) * C + first,
                                                      .y_column = at::SW * C,
                                                      .y_line = std::ptrdiff_t(at::SH) * at::W * C,
                                                      .add = add},
                                          used);
  }
};

}  // namespace strata::simd
