// A trace of the work of threads in several processes, in the format of Chrome, which Perfetto opens.
#pragma once
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <strata/base/text.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/train/any_process_group.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace strata::core {

/// An event as doubles only, so that processes can gather it. Times are seconds since the beginning of fit.
struct traced_event {
  enum kind : int { forward, backward, step, input };

  double what = 0, number = 0;  // a kind; the index of the group, or of the update
  double thread = 0, begin = 0, seconds = 0, samples = 0;
  double communication = 0, waiting = 0;  // times of a step
};
static_assert(std::is_trivially_copyable_v<traced_event> && sizeof(traced_event) % sizeof(double) == 0);

/// Gathers the events of all processes; a collective call.
inline std::vector<std::vector<traced_event>> gather_events(any_process_group& group, std::span<const traced_event> own) {
  constexpr std::size_t numbers = sizeof(traced_event) / sizeof(double), at_once = 4096;
  const double mine = double(own.size());
  const std::vector<double> counts = group.gather(std::span(&mine, 1));
  std::vector<std::vector<traced_event>> all(counts.size());
  const std::size_t most = std::size_t(*std::ranges::max_element(counts));
  for (std::size_t done = 0; done < most; done += at_once) {
    std::vector<double> piece(numbers * std::min(at_once, most - done));
    if (done < own.size())
      std::copy_n(reinterpret_cast<const double*>(own.data() + done), numbers * std::min(at_once, own.size() - done),
                  piece.data());
    const std::vector<double> pieces = group.gather(piece);
    for (std::size_t p = 0; p < all.size(); ++p) {
      const auto* from = reinterpret_cast<const traced_event*>(pieces.data() + p * piece.size());
      const std::size_t left = std::size_t(counts[p]) - std::min(std::size_t(counts[p]), done);
      all[p].insert(all[p].end(), from, from + std::min(at_once, left));
    }
  }
  return all;
}

/// `names`: names of the groups of kernels. The file is complete or absent. Throws strata_error.
/// Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
inline void write_trace_file(const std::filesystem::path& path, std::span<const std::vector<traced_event>> processes,
                             std::span<const std::string> names) {
  io::atomic_file file(path);
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  bool first = true;
  const auto add = [&](std::string line) {
    out += detail::text_of({first ? "" : ",\n", line});
    first = false;
    if (out.size() < 1u << 16) return;
    file.write(std::as_bytes(std::span(out)));
    out.clear();
  };
  const auto quoted = [](const std::string& text) {
    std::string to = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') to += '\\';
      to += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return to + '"';
  };
  for (std::size_t p = 0; p < processes.size(); ++p) {
    add(detail::text_of({R"({"ph":"M","name":"process_name","pid":)", p, R"(,"args":{"name":"process )", p, R"("}})"}));
    int threads = 0;
    for (const traced_event& e : processes[p]) threads = std::max(threads, int(e.thread) + 1);
    for (int t = 0; t < threads; ++t)
      add(detail::text_of(
          {R"({"ph":"M","name":"thread_name","pid":)", p, R"(,"tid":)", t, R"(,"args":{"name":"thread )", t, R"("}})"}));
    for (const traced_event& e : processes[p]) {
      const int what = int(e.what);
      const bool is_kernel = what == traced_event::forward || what == traced_event::backward;
      const std::string name = is_kernel                    ? quoted(names[std::size_t(e.number)])
                               : what == traced_event::step ? detail::formatted("\"update %.0f\"", e.number)
                                                            : std::string("\"input\"");
      constexpr const char* categories[] = {"forward", "backward", "step", "input"};
      std::string arguments;
      if (is_kernel) arguments = detail::formatted("\"samples\":%.0f", e.samples);
      if (what == traced_event::step)
        arguments = detail::formatted("\"communication ms\":%.3f,\"waiting ms\":%.3f", 1e3 * e.communication, 1e3 * e.waiting);
      add(detail::text_of({"{\"ph\":\"X\",\"name\":", name, ",\"cat\":\"", categories[what],
                           detail::formatted("\",\"pid\":%d,\"tid\":%.0f,\"ts\":%.3f,\"dur\":%.3f,\"args\":{", int(p), e.thread,
                                             1e6 * e.begin, 1e6 * e.seconds),
                           arguments, "}}"}));
    }
  }
  out += "\n]}\n";
  file.write(std::as_bytes(std::span(out)));
  file.commit();
}

}  // namespace strata::core
