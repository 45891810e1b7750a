// Definitions of text_table.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> used;
  bool header = true;
  for (const auto& cells : rows) {
    if (cells.size() == 1) continue;
    widths.resize(cells.size());
    used.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
      used[i] = used[i] || (!header && !cells[i].empty());
    }
    header = false;
  }
  std::string out;
  for (const auto& cells : rows) {
    std::string line = cells.size() == 1 ? cells[0] : "";
    for (std::size_t i = 0; cells.size() > 1 && i < cells.size(); ++i)
      if (used[i]) line += detail::text_of({cells[i], std::string(widths[i] - cells[i].size() + 2, ' ')});
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return out;
}

}  // namespace strata::detail
