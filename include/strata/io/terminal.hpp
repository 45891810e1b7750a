// The width of a terminal. Apart from os.hpp: each program prints, and few open files.
#pragma once
#include <optional>
#include <strata/base/linkage.hpp>

namespace strata::io {

/// Columns of the terminal that a file descriptor is, if its lines can be written again; 0 if their number is not known. Nothing
/// if it is not a terminal.
std::optional<int> terminal_columns(int file);

}  // namespace strata::io

#if STRATA_DEFINES
#include <strata/io/terminal.ipp>
#endif
