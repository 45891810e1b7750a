// General names that programs use beside `using namespace strata`: the library has them in inner namespaces.
#include <strata/parameter_server/parameter_rows.hpp>
#include <strata/parameter_server/parameter_store.hpp>
#include <strata/strata.hpp>
#include <strata/train/sidecar_evaluator.hpp>

using namespace strata;

struct alone {};
struct because {};
struct compiled {};
struct evaluated {};
struct evaluation {};
struct plan {};
struct refusal {};
struct sample_names {};
struct subtrees {};
struct tape {};
struct terminal {};
struct timed {};
using activations = int;
template <int, class>
struct at_t {};
template <class...>
struct filter_t {};
template <class...>
struct join_t {};
constexpr bool same(int a, int b) { return a == b; }
constexpr int bilinear(int a, int b) { return a + b; }
constexpr int find_rows = 1, launch = 2, length = 3, pack = 4, partition = 5, sum_over = 6;

struct program_of_a_user {
  alone a;
  compiled b;
  evaluation c;
  plan d;
  refusal e;
  tape f;
  terminal g;
  at_t<0, int> h;
  filter_t<int> i;
  join_t<int> j;
  because k;
  subtrees l;
  timed m;
  activations n;
};
static_assert(same(1, 1) && find_rows + launch + length + pack + partition + sum_over == 21 && sizeof(program_of_a_user) > 0);
