// Makes what was written survive a crash of the machine.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <strata/io/file_descriptor.hpp>

namespace strata::io {

/// Waits until the bytes of an open file or the names in an open folder are on the disk. False, with errno, if that failed.
inline bool flush_to_disk(const file_descriptor& file) {
#ifdef F_FULLFSYNC
  // On macOS fsync leaves the bytes in the cache of the disk. Some file systems know nothing else.
  if (::fcntl(file.number(), F_FULLFSYNC) == 0) return true;
#endif
  return ::fsync(file.number()) == 0;
}

}  // namespace strata::io
