// Counts the bytes that emulated kernels read and write: memory is closed before each of them, and the first access to a page
// opens it.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strata::machine::detail {

/// Counts how many bytes of some ranges of memory are touched, in pages. For each kernel, a page counts once as read if the
/// kernel reads it before it writes it, and once as written if the kernel writes it.
class touched_pages {
  enum access : std::uint8_t { none, read, written };
  struct range {
    std::byte* begin;
    std::vector<access> pages;
  };
  static inline touched_pages* now_ = nullptr;  // what the handler of the signal counts for; null: outside of during()
  static inline struct sigaction before_{};     // the handler that during() replaces

  std::vector<range> ranges_;
  std::vector<std::pair<std::size_t, std::size_t>> touched_;  // the index of the range, and of the page in it

  static bool is_write([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
    return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    return false;  // not known here: a page that is only written counts as read, too
#endif
  }
  static void handle(int number, siginfo_t* info, void* context) {
    if (!now_ || !now_->open(static_cast<std::byte*>(info->si_addr), is_write(context))) ::sigaction(number, &before_, nullptr);
  }
  /// Counts an access and opens the page for it; the program repeats the access when the handler returns. Returns false if the
  /// address lies in no range, or if its page was already open for writing.
  bool open(const std::byte* at, bool writes) {
    for (std::size_t r = 0; r < ranges_.size(); ++r) {
      range& in = ranges_[r];
      if (at < in.begin || at >= in.begin + in.pages.size() * page) continue;
      const auto index = std::size_t(at - in.begin) / page;
      access& seen = in.pages[index];
      if (seen == written) return false;
      if (seen == none) touched_.emplace_back(r, index);
      const bool now_written = writes || seen == read;
      (now_written ? bytes_written : bytes_read) += long(page);
      seen = now_written ? written : read;
      ::mprotect(in.begin + index * page, page, now_written ? PROT_READ | PROT_WRITE : PROT_READ);
      return true;
    }
    return false;
  }

 public:
  static constexpr std::size_t page = 4096;  // bytes
  long bytes_read = 0, bytes_written = 0;    // since the caller set them to 0

  touched_pages() { touched_.reserve(1 << 16); }  // so that the handler need not allocate memory
  /// Adds a range of `size` bytes, which begins at a page and is closed.
  void add(std::byte* begin, std::size_t size) { ranges_.push_back({begin, std::vector<access>(size / page)}); }

  /// Calls f(), which may read and write the ranges, and counts what it touches. Closes the ranges afterwards.
  template <class F>
  void during(F&& f) {
    struct sigaction ours{};
    ours.sa_sigaction = &handle;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    struct ended {
      touched_pages& pages;
      ~ended() {
        now_ = nullptr;
        ::sigaction(SIGSEGV, &before_, nullptr);
        for (range& each : pages.ranges_) ::mprotect(each.begin, each.pages.size() * page, PROT_NONE);
        for (const auto& [r, index] : pages.touched_) pages.ranges_[r].pages[index] = none;
        pages.touched_.clear();
      }
    } end{*this};
    now_ = this;
    ::sigaction(SIGSEGV, &ours, &before_);
    f();
  }
};

}  // namespace strata::machine::detail
