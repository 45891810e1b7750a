// The width of a terminal. Separate from os.hpp: each program prints, but few open files.
#pragma once
#include <optional>
#include <strata/base/linkage.hpp>

namespace strata::io {

/// Columns of the terminal behind a file descriptor, if its lines can be rewritten; 0 if the number is not known. Empty if it is
/// not a terminal.
std::optional<int> terminal_columns(int file);

}  // namespace strata::io

#if STRATA_DEFINES
#include <strata/io/terminal.ipp>
#endif
