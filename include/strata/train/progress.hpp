// What fit prints: Keras' progress bar on a terminal, one line per epoch elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <strata/base/linkage.hpp>
#include <strata/base/standard_clock.hpp>
#include <strata/base/text.hpp>
#include <strata/io/terminal.hpp>
#include <strata/state/logs.hpp>
#include <string>
#include <string_view>

namespace strata {

/// How much fit prints: nothing; a progress bar (a line per epoch if the output is not a terminal); a line per epoch.
enum class verbosity { off, bar, line };
/// fit(..., verbose::line)
using verbose = verbosity;

namespace detail {
/// The capabilities of an output stream.
struct terminal {
  bool moves = false;  // lines can be rewritten
  bool colours = false;
  int width = 0;  // columns; 0: unlimited

  static terminal of(const std::ostream& out) {
    const int file = &out == &std::cout ? 1 : &out == &std::cerr || &out == &std::clog ? 2 : -1;
    const std::optional<int> columns = file < 0 ? std::nullopt : io::terminal_columns(file);
    if (!columns) return {};
    const char *kind = std::getenv("TERM"), *no_color = std::getenv("NO_COLOR");
    return {true, kind && std::string_view(kind) != "dumb" && !(no_color && *no_color), *columns > 0 ? *columns : 80};
  }
};

double steady_seconds();
}  // namespace detail

namespace core {
/// The calls of each epoch: begin_epoch(), due() after each step, step() if due() returns true, end_epoch(). The output is that
/// of keras.utils.Progbar, with samples per second, updated every 50 ms; a line that will be rewritten is cut to the terminal's
/// width.
class progress_bar {
  static constexpr int cells = 20;
  static constexpr double interval = 0.05;

  std::ostream& out_;
  verbosity verbosity_;
  detail::terminal terminal_;
  double (*clock_)();
  int epoch_ = 0, epochs_ = 0, batch_size_ = 0;
  long steps_ = 0, done_ = 0;
  double start_ = 0, first_step_ = 0, now_ = 0, shown_ = 0;
  int width_shown_ = 0;
  bool open_ = false;  // the current line is unfinished

 public:
  explicit progress_bar(std::ostream& out, verbosity v = verbosity::bar) : progress_bar(out, v, detail::terminal::of(out)) {}
  /// For tests and unusual terminals: `clock` returns seconds.
  progress_bar(std::ostream& out, verbosity v, detail::terminal t, double (*clock)() = &detail::steady_seconds)
      : out_(out), verbosity_(v == verbosity::bar && !t.moves ? verbosity::line : v), terminal_(t), clock_(clock) {}
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  /// If an exception ended the epoch, its last line stays.
  ~progress_bar();

  /// Epochs count from 0. `steps` of the epoch; 0: unknown, or, from the second epoch on, as many as before. `batch_size`:
  /// samples of a step; 0: unknown.
  [[gnu::cold]] void begin_epoch(int epoch, int epochs, long steps = 0, int batch_size = 0);

  /// Call it once after each step, which it counts. Returns whether it is time to call step().
  bool due();

  /// Shows the means after `done` steps.
  [[gnu::cold]] void step(long done, const logs& values);

  /// Prints the final line of the epoch, with the values of the validation. That line stays, so it is not cut; its bar is shorter
  /// on a terminal that would wrap it.
  [[gnu::cold]] void end_epoch(const logs& values);

 private:
  enum class colour : char { none, bold, green, white };

  /// A text with colours.
  struct line {
    std::string text;
    std::string colours = {};  // a colour for each byte of the text

    [[gnu::cold]] line& add(std::string_view more, colour c = colour::none) {
      text += more;
      colours.append(more.size(), char(c));
      return *this;
    }
    [[gnu::cold]] line& add(const line& more) {
      text += more.text;
      colours += more.colours;
      return *this;
    }
    /// Bytes that do not continue a UTF-8 sequence: columns, as long as no character is two columns wide.
    static bool starts_column(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }
    [[gnu::cold]] int width() const { return int(std::count_if(text.begin(), text.end(), starts_column)); }
    [[gnu::cold]] void cut(int columns) {
      if (columns == 0) return;
      std::size_t end = 0;
      for (; end < text.size() && (columns > 0 || !starts_column(text[end])); ++end) columns -= starts_column(text[end]);
      text.resize(end);
    }
  };

  void rewrite(const line& text);

  [[gnu::cold]] void write_bar(line& text, int length) const;
  [[gnu::cold]] static std::string repeated(std::string_view what, int times);

  /// The first step is left out if there are others, because it is not typical.
  double seconds_per_step() const;
  [[gnu::cold]] static std::string remaining(double seconds);
  /// "3ms/step, 21.3k samples/s"
  [[gnu::cold]] std::string per_step(double seconds) const;

  /// " - accuracy: 0.9123 - loss: 0.2811": sorted by name, as in Keras, those of the validation last.
  [[gnu::cold]] static std::string metrics(const logs& values);
};

/// Keras' 'auto': a bar on a terminal, otherwise lines.
verbosity default_verbosity();
}  // namespace core

}  // namespace strata

#if STRATA_DEFINES
#include <strata/train/progress.ipp>
#endif
