// Definitions of progress.hpp.
#pragma once
#include <strata/base/exceptions.hpp>

namespace strata::detail {

STRATA_FUNCTION double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace strata::detail

namespace strata::core {

STRATA_FUNCTION progress_bar::~progress_bar() {
  if (!open_) return;
  STRATA_TRY { out_ << std::endl; }
  STRATA_CATCH_ALL {  // the stream throws: the error cannot be reported
  }
}

STRATA_FUNCTION void progress_bar::begin_epoch(int epoch, int epochs, long steps, int batch_size) {
  epoch_ = epoch, epochs_ = epochs, batch_size_ = batch_size;
  steps_ = steps > 0 ? steps : done_;
  done_ = 0, width_shown_ = 0;
  if (verbosity_ == verbosity::off) return;
  start_ = now_ = first_step_ = clock_();
  shown_ = start_ - 2 * interval;
  if (verbosity_ == verbosity::bar && epochs_ > 1) out_ << detail::formatted("Epoch %d/%d", epoch_ + 1, epochs_) << std::endl;
}

STRATA_FUNCTION bool progress_bar::due() {
  ++done_;
  if (verbosity_ != verbosity::bar) return false;
  now_ = clock_();
  if (done_ == 1) first_step_ = now_;
  return now_ - shown_ >= interval;
}

STRATA_FUNCTION void progress_bar::step(long done, const logs& values) {
  done_ = done;
  if (verbosity_ != verbosity::bar) return;
  shown_ = now_;
  line text;
  write_bar(text, cells);
  if (steps_ > 0)
    text.add(" ").add(remaining(seconds_per_step() * double(std::max(0L, steps_ - done_))), colour::bold);
  else
    text.add(" ").add(detail::formatted("%.0fs", now_ - start_), colour::bold);
  text.add(detail::text_of({" ", per_step(seconds_per_step()), metrics(values)}));
  // The last column stays free, because some terminals wrap as soon as it is used.
  text.cut(terminal_.width > 1 ? terminal_.width - 1 : 0);
  rewrite(text);
}

STRATA_FUNCTION void progress_bar::end_epoch(const logs& values) {
  if (verbosity_ == verbosity::off) return;
  now_ = clock_();
  if (verbosity_ == verbosity::line) {
    out_ << detail::formatted("Epoch %d/%d - %.0fs - ", epoch_ + 1, epochs_, now_ - start_)
         << per_step((now_ - start_) / double(std::max(1L, done_))) << metrics(values) << std::endl;
    return;
  }
  steps_ = done_;
  line rest;
  rest.add(" ")
      .add(detail::formatted("%.0fs", now_ - start_), colour::bold)
      .add(detail::text_of({" ", per_step(seconds_per_step()), metrics(values)}));
  line text;
  write_bar(text, cells);
  // A full bar carries the least information, so it is shortened if the values would wrap.
  if (const int excess = text.width() + rest.width() + 1 - terminal_.width; terminal_.width > 1 && excess > 0) {
    text = {};
    write_bar(text, std::max(1, cells - excess));
  }
  rewrite(text.add(rest));
  out_ << std::endl;
  open_ = false;
}

STRATA_FUNCTION void progress_bar::rewrite(const line& text) {
  std::string bytes = "\r";
  static constexpr const char* codes[] = {"", "\x1b[1m", "\x1b[32m", "\x1b[37m"};
  for (std::size_t at = 0, end; at < text.text.size(); at = end) {
    const char c = text.colours[at];
    end = std::min(text.colours.find_first_not_of(c, at), text.text.size());
    const std::string_view piece = std::string_view(text.text).substr(at, end - at);
    if (terminal_.colours && colour(c) != colour::none)
      bytes += detail::text_of({codes[std::size_t(c)], piece, "\x1b[0m"});
    else
      bytes += piece;
  }
  const int width = text.width();
  bytes.append(std::size_t(std::max(0, width_shown_ - width)), ' ');
  width_shown_ = width;
  open_ = true;
  out_ << bytes << std::flush;
}

STRATA_FUNCTION void progress_bar::write_bar(line& text, int length) const {
  if (steps_ <= 0) {
    text.add(detail::formatted("%7ld/Unknown", done_));
    return;
  }
  const int full = int(std::min(length * done_ / steps_, long{length}));
  text.add(detail::formatted("%*ld/%ld", int(detail::text_of({steps_}).size()), done_, steps_), colour::bold).add(" ");
  // Without colours, the rest of the bar is blank.
  text.add(repeated("━", full), colour::green).add(repeated(terminal_.colours ? "━" : " ", length - full), colour::white);
}

STRATA_FUNCTION std::string progress_bar::repeated(std::string_view what, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += what;
  return out;
}

STRATA_FUNCTION double progress_bar::seconds_per_step() const {
  return done_ > 1 ? (now_ - first_step_) / double(done_ - 1) : done_ == 1 ? now_ - start_ : 0;
}

STRATA_FUNCTION std::string progress_bar::remaining(double seconds) {
  const long s = long(seconds);
  if (seconds > 3600) return detail::formatted("%ld:%02ld:%02ld", s / 3600, s % 3600 / 60, s % 60);
  if (seconds > 60) return detail::formatted("%ld:%02ld", s / 60, s % 60);
  return detail::formatted("%lds", s);
}

STRATA_FUNCTION std::string progress_bar::per_step(double seconds) const {
  std::string text = seconds >= 1 || seconds == 0 ? detail::formatted("%.0fs/step", seconds)
                     : seconds >= 1e-3            ? detail::formatted("%.0fms/step", seconds * 1e3)
                                                  : detail::formatted("%.0fus/step", seconds * 1e6);
  if (batch_size_ > 0 && seconds > 0) {
    const double rate = batch_size_ / seconds;
    text += rate >= 999.5e3 ? detail::formatted(", %.3gM samples/s", rate / 1e6)
            : rate >= 999.5 ? detail::formatted(", %.3gk samples/s", rate / 1e3)
                            : detail::formatted(", %.3g samples/s", rate);
  }
  return text;
}

STRATA_FUNCTION std::string progress_bar::metrics(const logs& values) {
  std::string out;
  for (const bool of_validation : {false, true}) {
    const auto next_after = [&](std::string_view last) {
      const std::pair<std::string, double>* next = nullptr;
      for (const auto& v : values)
        if (v.first.starts_with("val_") == of_validation && v.first > last && (!next || v.first < next->first)) next = &v;
      return next;
    };
    for (auto* v = next_after(""); v; v = next_after(v->first))
      out += detail::text_of({" - ", v->first, detail::formatted(std::abs(v->second) > 1e-3 ? ": %.4f" : ": %.4e", v->second)});
  }
  return out;
}

STRATA_FUNCTION verbosity default_verbosity() { return detail::terminal::of(std::cout).moves ? verbosity::bar : verbosity::line; }

}  // namespace strata::core
