// A program with `using namespace strata` has common words as names of its own: strata has them in inner namespaces.
#include <strata/communicators/in_process.hpp>
#include <strata/data.hpp>
#include <strata/distribute/among.hpp>
#include <strata/distribute/device_mesh.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/placed.hpp>
#include <strata/distribute/process_memory.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/parameter_server/parameter_store.hpp>
#include <strata/resolvers/any_cluster.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/sidecar_evaluator.hpp>
#include <strata/train/transfer_weights.hpp>
#include <strata/train/weights_file.hpp>

using namespace strata;

// Declares six words of the program, and uses them.
#define STRATA_WORDS(a, b, c, d, e, f) \
  struct a {};                         \
  struct b {};                         \
  struct c {};                         \
  struct d {};                         \
  struct e {};                         \
  struct f {};                         \
  static_assert(sizeof(a) + sizeof(b) + sizeof(c) + sizeof(d) + sizeof(e) + sizeof(f) == 6)

STRATA_WORDS(action, activations, alone, among, arena, axis);
STRATA_WORDS(batch, because, block, bounds, buffer, callback);
STRATA_WORDS(cell, chunk, code, column, command, communicator);
STRATA_WORDS(compiled, config, context, convolution, counter, cpu);
STRATA_WORDS(cuda, decimal, device, edge, endpoint, engine);
STRATA_WORDS(entry, error, evaluation, event, example, executor);
STRATA_WORDS(fans, feature, field, figure, filter, frame);
STRATA_WORDS(fused, gradient, group, groups, history, host);
STRATA_WORDS(image, initializer, item, job, kernel, key);
STRATA_WORDS(label, layer, layout, length, level, loader);
STRATA_WORDS(lookup, loss, matrix, measures, memory, mesh);
STRATA_WORDS(message, metric, micro_batch, model, network, number);
STRATA_WORDS(operands, operation, optimizer, parameter, part, pass);
STRATA_WORDS(path, penalty, place, plan, plot, point);
STRATA_WORDS(process, program, progress, purpose, queue, range);
STRATA_WORDS(reason, record, reference, refusal, report, result);
STRATA_WORDS(row, row_range, sample, samples, segment, server);
STRATA_WORDS(session, settings, slot, source, state, step);
STRATA_WORDS(strategy, subgroup, table, tape, task, team);
STRATA_WORDS(terminal, threshold, timed, timetable, turn, unit);
STRATA_WORDS(value, vector, view, weight, window, window_axis);
STRATA_WORDS(worker, workspace, wheel, yard, zoom, zone);

template <class...>
struct join_t {};
constexpr bool same(int a, int b) { return a == b; }
constexpr int bilinear(int a, int b) { return a + b; }
constexpr int find_rows = 1, launch = 2, pack = 3, partition = 4, sum_over = 5;
static_assert(same(1, 1) && bilinear(1, 2) + find_rows + launch + pack + partition + sum_over == 18);

int main() { [[maybe_unused]] const join_t<> joined; }
