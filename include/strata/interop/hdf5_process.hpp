// A process that reads an HDF5 file for this one: libhdf5 1.10 may crash on damaged bytes, and then only that process ends.
// needs: hdf5
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/interop/hdf5_reader.hpp>
#include <strata/io/file_descriptor.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::detail {

/// One end of a socket between two processes of a program. Each member returns false if the other process has ended.
class process_link {
  io::file_descriptor socket_;

 public:
  process_link() = default;
  explicit process_link(int socket) : socket_(socket) {}
  int number() const { return socket_.number(); }
  void close() { socket_ = {}; }

  [[nodiscard]] bool put(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes = bytes.subspan(std::size_t(n));
    }
    return true;
  }
  [[nodiscard]] bool get(std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::recv(socket_.number(), bytes.data(), bytes.size(), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes = bytes.subspan(std::size_t(n));
    }
    return true;
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool put_value(const T& value) const {
    return put(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool get_value(T& value) const {
    return get(std::as_writable_bytes(std::span(&value, 1)));
  }
  [[nodiscard]] bool put_text(std::string_view text) const {
    return put_value(std::uint64_t(text.size())) && put(std::as_bytes(std::span(text)));
  }
  /// A process that has read damaged bytes may send anything: a text is limited to `most` bytes.
  [[nodiscard]] bool get_text(std::string& text, std::uint64_t most = std::uint64_t{1} << 28) const {
    std::uint64_t size = 0;
    if (!get_value(size) || size > most) return false;
    text.resize(std::size_t(size));
    return get(std::as_writable_bytes(std::span(text)));
  }
};

/// The requests to the process.
enum class hdf5_question : std::uint8_t { opened, has, names_in, find_array, read, has_attribute, texts };
enum class hdf5_number : std::uint8_t { of_float, of_double, of_int32, of_int64 };

struct hdf5_request {
  hdf5_question what{};
  hdf5_number type{};
  std::uint64_t count = 0;  // elements to read
};

template <class T>
constexpr hdf5_number hdf5_number_of() {
  if constexpr (std::is_same_v<T, float>) return hdf5_number::of_float;
  if constexpr (std::is_same_v<T, double>) return hdf5_number::of_double;
  if constexpr (std::is_same_v<T, std::int32_t>) return hdf5_number::of_int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return hdf5_number::of_int64;
}

/// Limits allocations of a process. A few bytes of a file may refer to a text many times, or unpack to gigabytes in libhdf5.
class memory_limit {
  rlim_t now_ = 0, own_;

 public:
  /// `own`: bytes that it may allocate besides those of allow().
  explicit memory_limit(rlim_t own) : own_(own) {
    std::ifstream pages("/proc/self/statm");
    if (pages >> now_) now_ *= rlim_t(::sysconf(_SC_PAGESIZE));
    allow(0);
  }
  void allow(rlim_t bytes) const {
    rlimit limit{};
    if (now_ == 0 || ::getrlimit(RLIMIT_AS, &limit) != 0) return;
    limit.rlim_cur = std::min(limit.rlim_max, now_ + own_ + bytes);
    ::setrlimit(RLIMIT_AS, &limit);
  }
};

/// The reading side of the process: answers requests until the other side closes the link. An answer is 1 and the result, or 0
/// and the text of an error.
class hdf5_server {
  const process_link& link_;
  const hdf5_reader& file_;
  const memory_limit& memory_;

 public:
  hdf5_server(const process_link& link, const hdf5_reader& file, const memory_limit& memory)
      : link_(link), file_(file), memory_(memory) {}

  void run() const {
    hdf5_request request;
    for (std::string path, attribute;
         link_.get_value(request) && link_.get_text(path) && link_.get_text(attribute) && answer(request, path, attribute);) {
    }
  }

 private:
  bool answer(const hdf5_request& r, const std::string& path, const std::string& attribute) const {
    std::string failure;
    STRATA_TRY {
      switch (r.what) {
        case hdf5_question::opened:
          return succeeds();
        case hdf5_question::has:
          return says(file_.has(path));
        case hdf5_question::names_in:
          return lists(file_.names_in(path));
        case hdf5_question::find_array:
          return describes(file_.find_array(path));
        case hdf5_question::has_attribute:
          return says(file_.has_attribute(path, attribute.c_str()));
        case hdf5_question::texts: {
          const auto values = file_.texts(path, attribute.c_str());
          return values ? says(true) && lists_more(*values) : says(false);
        }
        case hdf5_question::read:
          switch (r.type) {
            case hdf5_number::of_float:
              return reads<float>(path, r.count);
            case hdf5_number::of_double:
              return reads<double>(path, r.count);
            case hdf5_number::of_int32:
              return reads<std::int32_t>(path, r.count);
            case hdf5_number::of_int64:
              return reads<std::int64_t>(path, r.count);
          }
      }
    }
    STRATA_CATCH(const std::bad_alloc&) { failure = text_of({file_.name(), ": ", path, ": needs too much memory"}); }
    STRATA_CATCH(const std::exception& e) { failure = e.what(); }
    return link_.put_value(std::uint8_t{0}) && link_.put_text(failure);
  }
  bool succeeds() const { return link_.put_value(std::uint8_t{1}); }
  bool says(bool value) const { return succeeds() && link_.put_value(std::uint8_t(value)); }
  bool lists(const std::vector<std::string>& values) const { return succeeds() && lists_more(values); }
  bool lists_more(const std::vector<std::string>& values) const {
    bool sent = link_.put_value(std::uint64_t(values.size()));
    for (const std::string& text : values) sent = sent && link_.put_text(text);
    return sent;
  }
  bool describes(const std::optional<hdf5_array>& array) const {
    if (!array) return says(false);
    return says(true) && link_.put_value(std::uint8_t(array->is_float)) && link_.put_value(std::uint8_t(array->is_whole)) &&
           link_.put_value(std::uint64_t(array->size)) && link_.put_value(std::uint64_t(array->extents.size())) &&
           link_.put(std::as_bytes(std::span(array->extents)));
  }
  template <class T>
  bool reads(const std::string& path, std::uint64_t count) const {
    const std::optional<hdf5_array> array = file_.find_array(path);
    if (array && array->count() == count) {  // checked before memory is allocated; `read` reports other cases
      memory_.allow(16 * sizeof(T) * count);
      std::vector<T> numbers(static_cast<std::size_t>(count));
      file_.read(path, std::span(numbers));
      return succeeds() && link_.put(std::as_bytes(std::span(numbers)));
    }
    file_.read(path, std::span<T>(static_cast<T*>(nullptr), std::size_t(count)));
    return false;
  }
};

/// The process, and this one's end of the link. Calls of several threads are serialized.
class hdf5_process {
  const std::string name_;
  process_link link_;
  pid_t id_ = -1;
  std::mutex mutex_;

 public:
  hdf5_process(std::string name, const std::vector<std::byte>& bytes) : name_(std::move(name)) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("cannot be read, since there is no socket for it");
    link_ = process_link(ends[0]);
    process_link theirs(ends[1]);
    {
      const hdf5_call no_other_thread_calls_hdf5;
      id_ = ::fork();
    }
    if (id_ == 0) serve(theirs.number(), bytes);
    if (id_ < 0) fail("cannot be read, since the system starts no process for it");
    theirs.close();
  }
  hdf5_process(const hdf5_process&) = delete;
  hdf5_process& operator=(const hdf5_process&) = delete;
  ~hdf5_process() { end(); }

  const std::string& name() const { return name_; }

  /// Sends a request, and calls get(link), which returns whether the answer is complete. Throws the error that it sends.
  template <class Get>
  void ask(const hdf5_request& request, std::string_view path, std::string_view attribute, Get&& get) {
    const std::lock_guard lock(mutex_);
    std::uint8_t succeeded = 0;
    if (!link_.put_value(request) || !link_.put_text(path) || !link_.put_text(attribute) || !link_.get_value(succeeded))
      crashed();
    if (succeeded) {
      if (!get(std::as_const(link_))) crashed();
      return;
    }
    std::string failure;
    if (!link_.get_text(failure)) crashed();
    throw_error(failure);
  }

 private:
  [[noreturn]] void fail(std::string_view why) const { throw_error({name_, ": ", why}); }
  [[noreturn]] void crashed() {
    const int status = end();
    const bool took_long = WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
    fail(took_long ? "damaged: libhdf5 comes to no end with it" : "damaged: libhdf5 crashes when it reads it");
  }
  /// Returns the exit status of the process, as waitpid does; 0 if it has been collected elsewhere.
  int end() {
    link_.close();
    int status = 0;
    while (id_ > 0 && ::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status;
  }

  /// Runs the other process. It has no files of this one, prints nothing, and ends at any memory error, or when this one ends.
  [[noreturn]] void serve(int socket, const std::vector<std::byte>& bytes) const {
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP}) ::signal(number, SIG_DFL);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
    const rlimit no_core{0, 0}, seconds{seconds_for(bytes.size()), RLIM_INFINITY};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::setrlimit(RLIMIT_CPU, &seconds);
    constexpr int own = 3;
    const int nothing = ::open("/dev/null", O_RDWR);
    for (int standard = 0; standard < own; ++standard) ::dup2(nothing, standard);
    if (socket != own) ::dup2(socket, own);
    close_from(own + 1);
    {
      const process_link link(own);
      STRATA_TRY {
        const memory_limit memory(rlim_t(4 * bytes.size() + (64 << 20)));
        const hdf5_reader file(name_, bytes);
        hdf5_server(link, file, memory).run();
      }
      STRATA_CATCH(const std::exception& e) { refuse(link, e.what()); }
    }
    ::_exit(0);
  }
  /// Answers the first request if the file cannot be opened.
  static void refuse(const process_link& link, const std::string& why) {
    hdf5_request request;
    std::string path, attribute;
    if (link.get_value(request) && link.get_text(path) && link.get_text(attribute) && link.put_value(std::uint8_t{0}))
      (void)link.put_text(why);
  }
  /// Limits CPU time: damaged bytes may make libhdf5 loop forever.
  static rlim_t seconds_for(std::size_t bytes) { return rlim_t(10 + bytes / 1'000'000); }
  static void close_from(int first) {
#ifdef SYS_close_range
    if (::syscall(SYS_close_range, unsigned(first), ~0u, 0u) == 0) return;
#endif
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    const int end = int(std::min<rlim_t>(files.rlim_cur, 1 << 16));
    for (int number = first; number < end; ++number) ::close(number);
  }
};

}  // namespace strata::detail
