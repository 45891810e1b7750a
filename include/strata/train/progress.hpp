// What fit prints while it works: Keras' progress bar on a terminal, one plain line per epoch anywhere else.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <strata/base/text.hpp>
#include <strata/train/logs.hpp>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace strata {

/// How much fit prints: nothing, a bar that moves (a line per epoch where the output is no terminal), a line per epoch.
enum class verbosity { off, bar, line };
/// fit(..., verbose::line)
using verbose = verbosity;

/// What stands behind a stream.
struct terminal {
  bool moves = false;  // a line can be rewritten
  bool colours = false;
  int width = 0;  // columns; 0: unlimited

  static terminal behind(const std::ostream& out) {
    const int file = &out == &std::cout ? STDOUT_FILENO : &out == &std::cerr || &out == &std::clog ? STDERR_FILENO : -1;
    if (file < 0 || !isatty(file)) return {};
    const char *kind = std::getenv("TERM"), *no_color = std::getenv("NO_COLOR");
    winsize size{};
    const bool known = ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return {true, kind && std::string_view(kind) != "dumb" && !(no_color && *no_color), known ? int(size.ws_col) : 80};
  }
};

namespace detail {
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace detail

/// Epoch after epoch: begin_epoch; after each step due(), and step() if it says so; end_epoch. Looks as keras.utils.Progbar does.
/// The output stands still for 50 ms between two updates, and a line that moves is cut to the terminal's width.
class progress_bar {
  static constexpr int cells = 20;
  static constexpr double interval = 0.05;

  std::ostream& out_;
  verbosity verbosity_;
  terminal terminal_;
  double (*clock_)();
  int epoch_ = 0, epochs_ = 0;
  long steps_ = 0, done_ = 0;
  double start_ = 0, first_step_ = 0, now_ = 0, shown_ = 0;
  int width_shown_ = 0;
  bool open_ = false;  // the cursor stands in an unfinished line

 public:
  explicit progress_bar(std::ostream& out, verbosity v = verbosity::bar) : progress_bar(out, v, terminal::behind(out)) {}
  /// For tests and unusual terminals: `clock` tells seconds.
  progress_bar(std::ostream& out, verbosity v, terminal t, double (*clock)() = &detail::steady_seconds)
      : out_(out), verbosity_(v == verbosity::bar && !t.moves ? verbosity::line : v), terminal_(t), clock_(clock) {}
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  /// An epoch that an exception ended leaves its line as it is.
  ~progress_bar() {
    if (!open_) return;
    try {
      out_ << std::endl;
    } catch (...) {  // the stream throws: there is nobody to tell
    }
  }

  /// Epochs count from 0. steps: how many there will be; 0: unknown, and from the second epoch on as many as in the one before.
  [[gnu::cold]] void begin_epoch(int epoch, int epochs, long steps = 0) {
    epoch_ = epoch, epochs_ = epochs;
    steps_ = steps > 0 ? steps : done_;
    done_ = 0, width_shown_ = 0;
    if (verbosity_ == verbosity::off) return;
    start_ = now_ = first_step_ = clock_();
    shown_ = start_ - 2 * interval;
    if (verbosity_ == verbosity::bar && epochs_ > 1) out_ << detail::formatted("Epoch %d/%d", epoch_ + 1, epochs_) << std::endl;
  }

  /// To be asked once after each step, which it counts: whether it is time to call step().
  bool due() {
    ++done_;
    if (verbosity_ != verbosity::bar) return false;
    now_ = clock_();
    if (done_ == 1) first_step_ = now_;
    return now_ - shown_ >= interval;
  }

  /// Shows the means so far, after `done` steps.
  [[gnu::cold]] void step(long done, const logs& values) {
    done_ = done;
    if (verbosity_ != verbosity::bar) return;
    shown_ = now_;
    line text;
    write_bar(text);
    if (steps_ > 0)
      text.add(" ").add(remaining(seconds_per_step() * double(std::max(0L, steps_ - done_))), bold);
    else
      text.add(" ").add(detail::formatted("%.0fs", now_ - start_), bold);
    text.add(" " + per_step(seconds_per_step()) + metrics(values));
    // The last column stays free: some terminals wrap as soon as it is used.
    text.cut(terminal_.width > 1 ? terminal_.width - 1 : 0);
    rewrite(text);
  }

  /// The last word on the epoch, with values of the validation. This line stays, so it is not cut.
  [[gnu::cold]] void end_epoch(const logs& values) {
    if (verbosity_ == verbosity::off) return;
    now_ = clock_();
    if (verbosity_ == verbosity::line) {
      out_ << detail::formatted("Epoch %d/%d - %.0fs - ", epoch_ + 1, epochs_, now_ - start_)
           << per_step((now_ - start_) / double(std::max(1L, done_))) << metrics(values) << std::endl;
      return;
    }
    steps_ = done_;
    line text;
    write_bar(text);
    text.add(" ").add(detail::formatted("%.0fs", now_ - start_), bold).add(" " + per_step(seconds_per_step()) + metrics(values));
    rewrite(text);
    out_ << std::endl;
    open_ = false;
  }

 private:
  static constexpr const char *bold = "\x1b[1m", *green = "\x1b[32m", *white = "\x1b[37m";

  /// Pieces of text with a colour each.
  struct line {
    struct piece {
      std::string text;
      const char* colour;
    };
    std::vector<piece> pieces;

    line& add(std::string text, const char* colour = nullptr) {
      pieces.push_back({std::move(text), colour});
      return *this;
    }
    /// Bytes that do not continue a UTF-8 sequence: columns, as long as no character is two columns wide.
    static bool starts_column(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }
    int width() const {
      std::ptrdiff_t n = 0;
      for (const piece& p : pieces) n += std::ranges::count_if(p.text, starts_column);
      return int(n);
    }
    void cut(int columns) {
      if (columns == 0) return;
      for (piece& p : pieces) {
        std::size_t end = 0;
        for (; end < p.text.size() && (columns > 0 || !starts_column(p.text[end])); ++end) columns -= starts_column(p.text[end]);
        p.text.resize(end);
      }
    }
  };

  void rewrite(const line& text) {
    std::string bytes = "\r";
    for (const line::piece& p : text.pieces)
      bytes += p.colour && terminal_.colours && !p.text.empty() ? p.colour + p.text + "\x1b[0m" : p.text;
    const int width = text.width();
    bytes.append(std::size_t(std::max(0, width_shown_ - width)), ' ');
    width_shown_ = width;
    open_ = true;
    out_ << bytes << std::flush;
  }

  [[gnu::cold]] void write_bar(line& text) const {
    if (steps_ <= 0) {
      text.add(detail::formatted("%7ld/Unknown", done_));
      return;
    }
    const int full = int(std::min(cells * done_ / steps_, long{cells}));
    text.add(detail::formatted("%*ld/%ld", int(std::to_string(steps_).size()), done_, steps_), bold).add(" ");
    // Without colours, what is still to come has to differ in another way.
    text.add(repeated("━", full), green).add(repeated(terminal_.colours ? "━" : " ", cells - full), white);
  }
  [[gnu::cold]] static std::string repeated(std::string_view what, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += what;
    return out;
  }

  /// The first step is not typical, so it does not count where there are others.
  double seconds_per_step() const {
    return done_ > 1 ? (now_ - first_step_) / double(done_ - 1) : done_ == 1 ? now_ - start_ : 0;
  }
  [[gnu::cold]] static std::string remaining(double seconds) {
    const long s = long(seconds);
    if (seconds > 3600) return detail::formatted("%ld:%02ld:%02ld", s / 3600, s % 3600 / 60, s % 60);
    if (seconds > 60) return detail::formatted("%ld:%02ld", s / 60, s % 60);
    return detail::formatted("%lds", s);
  }
  [[gnu::cold]] static std::string per_step(double seconds) {
    if (seconds >= 1 || seconds == 0) return detail::formatted("%.0fs/step", seconds);
    if (seconds >= 1e-3) return detail::formatted("%.0fms/step", seconds * 1e3);
    return detail::formatted("%.0fus/step", seconds * 1e6);
  }

  /// " - accuracy: 0.9123 - loss: 0.2811": by name, as Keras does, and those of the validation behind the others.
  [[gnu::cold]] static std::string metrics(const logs& values) {
    std::string out;
    for (const bool of_validation : {false, true}) {
      const auto next_after = [&](std::string_view last) {
        const std::pair<std::string, double>* next = nullptr;
        for (const auto& v : values)
          if (v.first.starts_with("val_") == of_validation && v.first > last && (!next || v.first < next->first)) next = &v;
        return next;
      };
      for (auto* v = next_after(""); v; v = next_after(v->first))
        out += " - " + v->first + detail::formatted(std::abs(v->second) > 1e-3 ? ": %.4f" : ": %.4e", v->second);
    }
    return out;
  }
};

/// Keras' 'auto': a bar on a terminal, otherwise lines.
inline verbosity default_verbosity() { return terminal::behind(std::cout).moves ? verbosity::bar : verbosity::line; }

}  // namespace strata
