// Convolutions by cuDNN, with the plan that was the fastest of those that give the same bits in each run.
#pragma once
#if defined(__CUDACC__)
#include <strata/cuda/machine/dnn_hardware.cuh>
#else
#include <strata/cuda/machine/dnn_emulated.hpp>
#endif
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/fill_with_numbers.hpp>
#include <strata/cuda/machine/library_choices.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <string>
#include <vector>

namespace strata::machine {

#if defined(STRATA_CUDNN) || !defined(__CUDACC__)

/// A convolution, ready to be computed: run() neither waits nor chooses.
class library_convolution {
  dnn_convolution what_;
  std::shared_ptr<const dnn_plan> plan_;

 public:
  /// Empty if the library has no plan for it. Throws strata_error for a wrong description. The first call for a
  /// description measures, in memory of its own. If there is too little, throws no_memory_to_choose or, with has_room, returns
  /// nothing.
  static std::optional<library_convolution> find(const queue& q, const dnn_convolution& what, bool has_room = false) {
    check(what);
    std::optional<dnn_plan> plan;
    library_choices::the().find(
        strata::detail::text_of({dnn_identity(q.device()), ": ", text_of(what)}),
        [&](const std::string& text) {
          return text == "none" || text == library_choices::none_for_now || (plan = dnn_plan::from_text(q, what, text));
        },
        [&] {
          plan = fastest(q, what);
          return plan ? plan->text() : "none";
        },
        has_room ? std::function<void()>() : [=] { (void)find(q, what, true); });
    if (!plan) return {};
    library_convolution made;
    made.what_ = what, made.plan_ = std::make_shared<const dnn_plan>(std::move(*plan));
    return made;
  }
  const dnn_plan& plan() const { return *plan_; }
  /// Throws strata_error if an address is not aligned as the description says.
  void run(const queue& q, const dnn_addresses& at) const {
    check(what_, at);
    plan_->run(q, at);
  }

 private:
  static std::optional<dnn_plan> fastest(const queue& q, const dnn_convolution& what) {
    std::vector<dnn_plan> candidates = dnn_plan::candidates(q, what);
    if (candidates.empty()) return {};
    const cuda_device on(q.device());
    const auto array = [&](long size) {
      auto memory = on.allocate<std::byte>(std::size_t(size * bytes_of(what.factors)));
      for_each_index(q, size, detail::fill_with_numbers{memory.data(), what.factors == factor_type::bf16});
      return memory;
    };
    const auto inputs = array(what.size_of_inputs()), kernel = array(what.size_of_kernel()),
               outputs = array(what.size_of_outputs()), bias = array(what.filters);
    const auto workspace = on.allocate<std::byte>(dnn_workspace);
    const dnn_addresses at{inputs.data(), kernel.data(), outputs.data(), reinterpret_cast<const float*>(bias.data()),
                           workspace.data()};
    const auto& computed = what.direction == dnn_direction::forward          ? outputs
                           : what.direction == dnn_direction::input_gradient ? inputs
                                                                             : kernel;
    const auto result_of = [&](const dnn_plan& plan) {
      plan.run(q, at);
      std::vector<std::byte> all(computed.size());
      on.copy_to_host(q, static_cast<const std::byte*>(computed.data()), std::span<std::byte>(all));
      on.wait(q);
      return all;
    };
    std::optional<dnn_plan> best;
    double least = 0;
    for (dnn_plan& each : candidates) {
      if (result_of(each) != result_of(each)) continue;
      const double time = each.milliseconds(q, at);
      if (!best || time < least) best.emplace(std::move(each)), least = time;
    }
    return best;
  }
};

#endif

}  // namespace strata::machine
