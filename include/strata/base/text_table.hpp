// Tables as text.
#pragma once
#include <algorithm>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <vector>

namespace strata::detail {

/// A table as text: columns are aligned and two blanks apart, and a column that is empty below its header is left out. A row of
/// one cell is printed as it is. Cells are ASCII.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/base/text_table.ipp>
#endif
