// Kernels of a program on a backend: which kernel computes which chain of operations, and the table of their code.
#pragma once
#include <array>
#include <strata/kernel/segmented.hpp>
#include <strata/program/place_arenas.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/program.hpp>

namespace strata {

// The parts of the message about a missing kernel.
template <class Backend>
struct on_backend;
template <class Operation>
struct for_operation;
template <int Node>
struct at_node;
template <class Where, class Who, class What, class Backend, class... Why>
struct missing_kernel;
namespace reasons {
inline constexpr reason an_activation_has_value_derivative_uses_input_and_uses_output_or_a_kernel_of_its_own{
    "an activation has the static members value, derivative, uses_input and uses_output, or a kernel of its own"};
inline constexpr reason a_kernel_has_static_forward_and_backward_of_const_operands{
    "a kernel has forward(const operands<T>&) and backward(const operands<T>&), which are static and return nothing"};
inline constexpr reason an_element_wise_join_has_value_and_gradients_or_a_kernel_of_its_own{
    "an element-wise join has the static members value and gradients, or a kernel of its own"};
}  // namespace reasons

namespace detail {
/// computed_operation_t of a node, whose shape is looked up only where the operation is a case of another one.
template <class Operation, class Items, int Node>
struct computed_at {
  using type = Operation;
};
template <is_case_of_another Operation, class Items, int Node>
struct computed_at<Operation, Items, Node> {
  using type = computed_operation_t<Operation, tape_of<Items>.in(Node, 0)>;
};
template <class Items, int Node>
using computed_at_t = typename computed_at<typename at_t<Node, node_types_of<Items>>::operation, Items, Node>::type;

template <class Items, int First, class Counted>
struct chain_type;
template <class Items, int First, int... K>
struct chain_type<Items, First, std::integer_sequence<int, K...>> {
  using type = fused<computed_at_t<Items, First + K>...>;
};
template <class Items, int First>
struct chain_type<Items, First, std::integer_sequence<int, 0>> {
  using type = computed_at_t<Items, First>;
};

/// Whether views lie between the first and the last of these nodes, so that they are an operation, views and the loss.
template <int N>
constexpr bool has_views(const tape<N>& t, int first, int count) {
  return count > 1 && t.nodes[first + 1].operation->traits.is_view;
}

template <class Program, class Backend, int First, int Count,
          bool HasViews = has_views(tape_of<typename Program::items>, First, Count)>
struct kernel_of {
  using items = typename Program::items;
  using chain = typename chain_type<items, First, std::make_integer_sequence<int, Count>>::type;
  template <int... K>
  static auto find(std::integer_sequence<int, K...>)
      -> find_kernel<Backend, chain, typename Program::precision, tape_of<items>.in(First, K)...>;
  using type = typename decltype(find(std::make_integer_sequence<int, tape_of<items>.nodes[First].arity>{}))::type;
};

/// The views are views of the logits: these have the shape that the loss takes.
template <class Program, class Backend, int First, int Count>
struct kernel_of<Program, Backend, First, Count, true> {
  using items = typename Program::items;
  using operation = typename at_t<First, node_types_of<items>>::operation;
  using loss = typename at_t<First + Count - 1, node_types_of<items>>::operation;
  using type = typename find_kernel<Backend, fused<operation, loss>, typename Program::precision,
                                    tape_of<items>.in(First + Count - 1)>::type;
};

/// The operation that the backend computes together with a loss (operation_before_loss), or 0.
template <class Program, class Backend, int Loss>
constexpr int joint_with_loss() {
  constexpr int before = operation_before_loss(tape_of<typename Program::items>, Loss);
  if constexpr (before > 0)
    if constexpr (!std::is_void_v<typename kernel_of<Program, Backend, before, Loss + 1 - before>::type>) return before;
  return 0;
}

template <class Program, class Backend>
inline constexpr joint_operations joint_with_losses = [] {
  constexpr tape_ends ends = ends_of(tape_of<typename Program::items>);
  return [&]<int... K>(std::integer_sequence<int, K...>) {
    return joint_operations{ends, {joint_with_loss<Program, Backend, ends.losses[K]>()...}};
  }(std::make_integer_sequence<int, ends.output_count>{});
}();

template <class Kernel, bool NarrowInput, bool NarrowOutput>
struct kernel_of_narrow {
  using type = typename Kernel::template with_narrow<NarrowInput, NarrowOutput>;
};
template <class Kernel>
struct kernel_of_narrow<Kernel, false, false> {
  using type = Kernel;
};
template <class Kernel, bool NarrowInput, bool NarrowOutput>
constexpr kernel_memory memory_with_narrow() {
  constexpr const kernel_traits& wide = traits_of_kernel<Kernel>;
  if constexpr ((NarrowInput && !wide.input_end.is_possible) || (NarrowOutput && !wide.output_end.is_possible)) {
    return {};
  } else {
    constexpr const kernel_traits& form = traits_of_kernel<typename kernel_of_narrow<Kernel, NarrowInput, NarrowOutput>::type>;
    return {form.saved, form.scratch, form.scratch_per_sample};
  }
}

template <class K>
constexpr kernel_match match_of(int count) {
  constexpr const kernel_traits& traits = traits_of_kernel<K>;
  kernel_match match{count, {traits, true}};
  if constexpr (traits.input_end.is_possible || traits.output_end.is_possible) {
    auto& with_narrow = match.kernel.with_narrow;
    with_narrow[0][1] = memory_with_narrow<K, false, true>();
    with_narrow[1][0] = memory_with_narrow<K, true, false>();
    with_narrow[1][1] = memory_with_narrow<K, true, true>();
  }
  return match;
}

template <class Program, class Backend, int First, int Count>
constexpr kernel_match longest_match() {
  constexpr const joint_operations& joint = joint_with_losses<Program, Backend>;
  constexpr int joint_end = joint.end_of(First);
  if constexpr (Count == 0) {
    return {};
  } else if constexpr (joint_end > 0) {
    return match_of<typename kernel_of<Program, Backend, First, joint_end - First>::type>(joint_end - First);
  } else if constexpr (!may_fuse(First, Count, joint)) {
    return longest_match<Program, Backend, First, Count - 1>();
  } else {
    using K = typename kernel_of<Program, Backend, First, Count>::type;
    if constexpr (!std::is_void_v<K>)
      return match_of<K>(Count);
    else if constexpr (Count > 1)
      return longest_match<Program, Backend, First, Count - 1>();
    else
      return {};
  }
}

/// The longest chain of operations at a node. On a backend that splits programs it ends where another stage begins.
template <class Program, class Backend>
constexpr int chain_on(int first, purpose why) {
  constexpr const auto& t = tape_of<typename Program::items>;
  const int length = chain_length(t, first, why);
  if constexpr (requires { typename Backend::split; }) {
    constexpr const auto& stage_of = Backend::split::template stage_of_node<typename Program::items>;
    for (int k = 1; k < length; ++k)
      if (stage_of[std::size_t(first + k)] != stage_of[std::size_t(first)]) return k;
  }
  return length;
}

/// The match of node I, unless a match of an earlier node covers it: that saves half of all look-ups. Each match needs the one
/// before, so instantiate them in order.
template <class Program, class Backend, purpose Why, int I>
struct match_at {
  static constexpr int covered_before = match_at<Program, Backend, Why, I - 1>::covered;
  static constexpr kernel_match found = [] {
    if constexpr (covered_before > I)
      return kernel_match{};
    else
      return longest_match<Program, Backend, I, chain_on<Program, Backend>(I, Why)>();
  }();
  static constexpr int covered = covered_before > I ? covered_before : I + found.length;
};
template <class Program, class Backend, purpose Why>
struct match_at<Program, Backend, Why, 0> {  // the batch
  static constexpr kernel_match found{};
  static constexpr int covered = 1;
};

/// The inputs whose gradients a program computes instead of those of its parameters, a bit for each: see input_gradient_program.
template <class Program>
inline constexpr unsigned wanted_inputs_of = 0;
template <class Program>
  requires requires { Program::wanted_inputs; }
inline constexpr unsigned wanted_inputs_of<Program> = Program::wanted_inputs;

template <class Program, class Backend, purpose Why>
constexpr auto plan_program() {
  using items = typename Program::items;
  constexpr const auto& t = tape_of<items>;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    const kernel_match matches[] = {match_at<Program, Backend, Why, I>::found...};
    if constexpr (cuts_plans<Backend> && Why == purpose::training)
      return make_plan(t, layout_of<items>, matches, Why, true, Backend::least_elements);
    else if constexpr ((divides_parameters<Backend> && Why == purpose::training) || divides_devices<Backend>)
      return in_place_arenas<std::remove_cvref_t<decltype(Backend::split::table)>>(
          make_plan(t, layout_of<items>, matches, Why, false), layout_of<items>, Backend::split::template stage_of_node<items>);
    else
      return make_plan(t, layout_of<items>, matches, Why, true, 0, wanted_inputs_of<Program>);
  }(std::make_integer_sequence<int, t.size>{});
}

template <class Program, class Backend, purpose Why>
inline constexpr auto made_plan = plan_program<Program, Backend, Why>();
}  // namespace detail

namespace core {
/// Whether an operation of the program differs between training and inference.
template <class Program>
inline constexpr bool infers_differently = [] {
  constexpr const auto& t = tape_of<typename Program::items>;
  if (t.well_shaped())
    for (const tape_node& n : t.nodes)
      if (n.operation->traits.whole_batch || n.operation->traits.folds || n.operation->traits.only_trains) return true;
  return false;
}();

/// Whether inference has a plan of its own. Otherwise it has that of training, which halves the compile time.
template <class Program, class Backend>
inline constexpr bool has_two_plans = infers_differently<Program> || cuts_plans<Backend> || divides_parameters<Backend>;
}  // namespace core

namespace detail {
/// The purpose whose plan is used for Why: Why itself, or training if one plan serves both.
template <class Program, class Backend, purpose Why>
inline constexpr purpose purpose_of_plan = has_two_plans<Program, Backend> ? Why : purpose::training;
}  // namespace detail

namespace core {
template <class Program, class Backend, purpose Why = purpose::training>
inline constexpr const auto& plan_of = detail::made_plan<Program, Backend, detail::purpose_of_plan<Program, Backend, Why>>;

template <class Program, class Backend, int G, purpose Why = purpose::training>
using kernel_at =
    typename detail::kernel_of_narrow<typename detail::kernel_of<Program, Backend, plan_of<Program, Backend, Why>.groups[G].first,
                                                                 plan_of<Program, Backend, Why>.groups[G].count>::type,
                                      plan_of<Program, Backend, Why>.groups[G].has_narrow_input,
                                      plan_of<Program, Backend, Why>.groups[G].has_narrow_output>::type;

/// The kernel that a program runs for the loss of output Output. A backend whose loss kernels also compute the metrics of that
/// output specialises it.
template <class Program, class Backend, class Kernel, int Output>
struct kernel_of_output {
  using type = Kernel;
};
template <class Program, class Backend, class Kernel, int Output>
  requires requires { typename Backend::split; }
struct kernel_of_output<Program, Backend, Kernel, Output> : kernel_of_output<Program, typename Backend::base, Kernel, Output> {};
}  // namespace core

namespace detail {
template <class Program, class Backend, int G, purpose Why,
          int Output = plan_of<Program, Backend, Why>.groups[G].number_of_output>
struct kernel_in_program : kernel_of_output<Program, Backend, kernel_at<Program, Backend, G, Why>, Output> {};
template <class Program, class Backend, int G, purpose Why>
struct kernel_in_program<Program, Backend, G, Why, -1> {
  using type = kernel_at<Program, Backend, G, Why>;
};
}  // namespace detail

namespace core {
/// Whether a program trains. The optimizer of a predictor has `predicts_only`: nothing that only training needs is compiled.
template <class Program>
inline constexpr bool is_trained = !requires { requires Program::optimizer::predicts_only; };

/// The kernels of the groups, in order: all code that depends on the network.
template <class Program, class Backend, purpose Why = purpose::training>
inline constexpr auto code_table = []<int... G>(std::integer_sequence<int, G...>) {
  using T = typename Program::value_type;
  using queue = typename device_of<Backend>::queue;
  return std::array<kernel_code<T, queue>, sizeof...(G)>{
      code_of < typename detail::kernel_in_program<Program, Backend, G, Why>::type, T, queue,
      Why == purpose::training && is_trained < Program >> ...};
}(std::make_integer_sequence<int, plan_of<Program, Backend, Why>.group_count>{});
}  // namespace core

namespace detail {
template <class Program, class Backend>
inline constexpr int first_missing_kernel = [] {
  const auto& p = plan_of<Program, Backend>;
  for (int g = 0; g < p.group_count; ++g)
    if (!p.groups[g].kernel.exists) return p.groups[g].first;
  return -1;
}();
template <class Program, class Backend>
inline constexpr int first_half_kernel = []<int... G>(std::integer_sequence<int, G...>) {
  using T = typename Program::value_type;
  using queue = typename device_of<Backend>::queue;
  constexpr bool is_whole[] = {has_passes<kernel_at<Program, Backend, G>, T, queue>...};
  for (const int g : {G...})
    if (!is_whole[g]) return plan_of<Program, Backend>.groups[g].first;
  return -1;
}(std::make_integer_sequence<int, plan_of<Program, Backend>.group_count>{});
}  // namespace detail

namespace core {
/// The first node without a kernel, or with one that lacks a function; -1: none.
template <class Program, class Backend>
inline constexpr int first_without_kernel =
    detail::first_missing_kernel<Program, Backend> >= 0 ? detail::first_missing_kernel<Program, Backend>
                                                        : detail::first_half_kernel<Program, Backend>;
}  // namespace core

namespace detail {
/// no_complaint, or a further diagnostic of a backend about a program.
template <class Program, class Backend>
struct backend_verdict {
  using type = no_complaint;
};

template <class Operation, bool HasOne>
constexpr auto what_makes_a_kernel() {
  if constexpr (HasOne)
    return type_list<because<reasons::a_kernel_has_static_forward_and_backward_of_const_operands>>{};
  else if constexpr (requires { typename Operation::is_activation; })
    return type_list<because<reasons::an_activation_has_value_derivative_uses_input_and_uses_output_or_a_kernel_of_its_own>>{};
  else if constexpr (requires { requires Operation::is_elementwise_join; })
    return type_list<because<reasons::an_element_wise_join_has_value_and_gradients_or_a_kernel_of_its_own>>{};
  else
    return type_list<>{};
}
template <class Program, class Backend, int Node>
struct kernel_verdict {
  using failed = at_t<Node, node_types_of<typename Program::items>>;
  template <class... Why>
  static missing_kernel<at_node<Node>, by_layer<typename failed::layer>, for_operation<typename failed::operation>,
                        on_backend<Backend>, Why...>
      with(type_list<Why...>);
  using type = decltype(with(what_makes_a_kernel<typename failed::operation, (first_missing_kernel<Program, Backend> < 0)>()));
};
template <class Program, class Backend>
struct kernel_verdict<Program, Backend, -1> {
  using type = no_complaint;
};

/// Base of executors. Its instantiation checks that the loss fits the network and that the backend has all kernels.
template <class Program, class Backend>
struct compiled {
  static_assert(detail::diagnosed<typename verdict<typename Program::items>::type>[0]);
  static_assert(detail::diagnosed<typename kernel_verdict<Program, Backend, first_without_kernel<Program, Backend>>::type>[0]);
  static_assert(detail::diagnosed<typename backend_verdict<Program, Backend>::type>[0]);
  static_assert(!tape_of<typename Program::items>.well_shaped() ||
                    ends_of_program<Program>.output_count == length(typename Program::outputs{}),
                "a program has one compared_output for each loss of its tape");
};
}  // namespace detail

}  // namespace strata
