// Is loaded into clang++ with LD_PRELOAD. When the compiler opens a file of the folder $STRATA_BRANCHES, it forks: the child
// finds the file, continues to compile, and ends. If it has no error, the file is removed. The parent then continues as if there
// were no such file.
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

extern "C" int open(const char* path, int flags, ...) {
  static const auto really_open = reinterpret_cast<int (*)(const char*, int, ...)>(dlsym(RTLD_NEXT, "open"));
  static const char* const branches = getenv("STRATA_BRANCHES");
  va_list more;
  va_start(more, flags);
  const int mode = va_arg(more, int);
  va_end(more);
  if (branches && std::string_view(path).starts_with(branches)) {
    if (const pid_t branch = fork(); branch != 0) {
      int status = 1;
      if (branch > 0 && waitpid(branch, &status, 0) == branch && status == 0) unlink(path);
      errno = ENOENT;
      return -1;
    }
  }
  return really_open(path, flags, mode);
}
