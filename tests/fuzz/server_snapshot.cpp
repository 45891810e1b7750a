// needs: protozero
// Snapshots of a parameter server, and a server that continues from one. Lengths and checksums of sections can be corrected, so
// that inputs get past them.
#include <strata/parameter_server/parameter_snapshots.hpp>

#include "fuzz.hpp"
#include "small_server.hpp"
using namespace strata;
using namespace strata::core;

namespace {
/// The sections of a snapshot as an input: each begins with its size in two bytes.
std::string sections_of(const fuzz::small_server& server) {
  std::string all;
  detail::save_snapshot(server.store, [&](std::string_view section) {
    (all += char(section.size() & 0xFF)) += char(section.size() >> 8);
    all += section;
  });
  return all;
}
std::string file_of(std::string_view sections, std::string_view end = "end") {
  return fuzz::written([&](const auto& path) {
    detail::section_writer write(path);
    write("strata parameter server, snapshot 4\nprogram");
    while (sections.size() >= 2) {
      const std::size_t size = std::uint8_t(sections[0]) + 256u * std::uint8_t(sections[1]);
      write(sections.substr(2, size));
      sections.remove_prefix(std::min(2 + size, sections.size()));
    }
    write(end);
    write.commit();
  });
}
void assign(fuzz::small_server& server) {
  server.store.join({.rank = 0, .name = "chief", .incarnation = 1});
  for (const std::uint32_t shard : {0u, 1u})
    server.store.assign(0, 1, shard, false, fuzz::small_server::shard_size * sizeof(float),
                        [](void* to, std::size_t bytes) { std::memset(to, 0, bytes); });
}

std::vector<std::string> seeds() {
  fuzz::small_server begun, assigned;
  assign(assigned);
  return {fuzz::with_choice(0, sections_of(begun)), fuzz::with_choice(0, sections_of(assigned)),
          fuzz::with_choice(1, file_of(sections_of(assigned)))};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  std::ofstream(fuzz::folder() / "ps_0.snapshot", std::ios::binary)
      << (chosen.number & 1 ? std::string(chosen.rest) : file_of(chosen.rest));
  fuzz::small_server server, again;
  if (!parameter_snapshots({.folder = fuzz::folder()}, 0, "program").restore(server.store)) return;
  fuzz::accepted([&] {
    const std::string sections = sections_of(server);
    std::ofstream(fuzz::folder() / "ps_0.snapshot", std::ios::binary) << file_of(sections);
    fuzz::check(parameter_snapshots({.folder = fuzz::folder()}, 0, "program").restore(again.store));
    fuzz::check(sections_of(again) == sections);

    server.store.join({.rank = 1, .name = "worker 0", .incarnation = 1});
    server.store.push(
        {.worker = 1, .incarnation = 1, .step = 1, .samples = 1}, 1, nullptr, fuzz::small_server::shard_size * sizeof(float),
        [](void* to, std::size_t n) { std::memset(to, 1, n); }, [](auto) {});
    server.store.tick();
  });
}

const fuzz::target server_snapshot_file{"server_snapshot", seeds, read};
}  // namespace
