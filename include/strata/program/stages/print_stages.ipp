// Definitions of print_stages.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::string stages_text(int element_size, const stage_info& info) {
  const int stages = int(info.memory.size());
  const auto bytes = [&](long elements) { return readable_memory(double(elements) * element_size); };
  const bool several = stages > info.places;  // of a place
  std::string out = info.groups > 1 ? text_of({info.groups, " groups of "}) : "";
  out += text_of({info.places, ' ', info.place, info.places == 1 ? "" : "s"});
  if (several) out += text_of({" with ", stages / info.places, " stages each"});
  if (!info.schedule.empty())
    out +=
        text_of({", ", info.schedule, " of ", info.micro_batches, info.micro_batches == 1 ? " micro-batch, " : " micro-batches, ",
                 formatted("%.1f %%", 100 * info.bubble), " of the time idle if stages take equally long"});
  out += '\n';
  std::vector<std::vector<std::string>> rows = {{several ? "stage" : std::string(info.place),
                                                 several ? std::string(info.place) : "", "groups", "memory per sample",
                                                 "micro-batches at a time"}};
  for (int s = 0; s < stages; ++s) {
    std::string groups;
    for (std::size_t g = 0; g < info.stage_of.size(); ++g)
      if (info.stage_of[g] == s) groups += text_of({groups.empty() ? "%" : ", %", g});
    rows.push_back({std::to_string(s), several ? std::to_string(s % info.places) : "", groups, bytes(info.memory[std::size_t(s)]),
                    std::to_string(info.in_flight[std::size_t(s)])});
  }
  out += aligned(rows);
  rows = {{"sent", text_of({"from ", several ? "stage" : info.place}), "to", "bytes per sample", "after", "before"}};
  for (const stage_transfer& t : info.transfers) {
    const char* const direction = t.of_gradient ? "backward of %" : "forward of %";
    rows.push_back({text_of({t.of_gradient ? "gradient of %" : "output of %", t.group}), std::to_string(t.from),
                    std::to_string(t.to), bytes(t.size), text_of({direction, t.after}), text_of({direction, t.before})});
  }
  if (rows.size() > 1) out += aligned(rows);
  if (info.micro_batches == 1) return out;
  const std::size_t turns = info.turns.size() / std::size_t(info.places);
  const std::size_t width = std::to_string(info.micro_batches - 1).size() + (several ? 3 : 2);
  for (int p = 0; p < info.places; ++p) {
    std::string line;
    for (std::size_t i = 0; i < turns; ++i) {
      const turn& t = info.turns[std::size_t(p) * turns + i];
      const int end = info.ends[std::size_t(p) * turns + i];
      line.resize(std::size_t(end - (t.backward ? 2 : 1)) * width, ' ');
      line += text_of({t.backward ? 'B' : 'F', t.micro_batch});
      if (several) line += char('a' + t.stage / info.places);
    }
    out += text_of({info.place, ' ', p, "  ", line, '\n'});
  }
  return out;
}

}  // namespace strata::detail
