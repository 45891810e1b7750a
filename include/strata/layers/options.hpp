// Options of layers are types, in any order. Each one changes the layer's settings or adjusts its parameters.
#pragma once
#include <strata/base/decimal.hpp>
#include <strata/base/float_range.hpp>
#include <strata/base/meta.hpp>
#include <strata/concepts/layer.hpp>
#include <string_view>

namespace strata {

/// Steps between two windows: stride<2>, stride<2, 1> (vertical, horizontal).
template <int Vertical, int Horizontal = Vertical>
struct stride {
  static constexpr void configure(auto& settings)
    requires requires { settings.stride_height; }
  {
    // In the settings of pooling 0 means "not given", so that a wrong stride of 0 is stored as -1.
    settings.stride_height = Vertical > 0 ? Vertical : -1, settings.stride_width = Horizontal > 0 ? Horizontal : -1;
  }
};

/// Distance between two taps of a kernel.
template <int Vertical, int Horizontal = Vertical>
struct dilation {
  static constexpr void configure(auto& settings)
    requires requires { settings.dilation_height; }
  {
    settings.dilation_height = Vertical, settings.dilation_width = Horizontal;
  }
};

/// Splits channels into N groups that are convolved separately; channel_groups<C> on C channels is a depthwise convolution.
template <int N>
struct channel_groups {
  static constexpr void configure(auto& settings)
    requires requires { settings.groups; }
  {
    settings.groups = N;
  }
};

/// Pads with zeros so that out = ceil(in / stride). If their number is odd, the end gets one more than the beginning, as in
/// TensorFlow.
struct same_padding {
  static constexpr void configure(auto& settings)
    requires requires { settings.same; }
  {
    settings.same = true;
  }
};

/// No padding: the default.
struct valid_padding {
  static constexpr void configure(auto& settings)
    requires requires { settings.same; }
  {
    settings.same = false;
  }
};

/// y = W x instead of W x + b.
struct no_bias {
  static constexpr void configure(auto& settings)
    requires requires { settings.bias; }
  {
    settings.bias = false;
  }
};

namespace reasons {
inline constexpr reason initializers_have_a_name_and_fill_of_values_a_shape_and_a_philox{
    "an initializer has name and fill(std::span<double> values, shape extents, philox random), both static"};
inline constexpr reason regularizers_are_l1_l2_or_l1_l2{
    "a regularizer is l1<...>, l2<...>, l1_l2<...> or has a value, a penalty"};
inline constexpr reason a_penalty_must_be_at_least_0_and_at_most_1e38{
    "the factors of a penalty must be at least 0 and at most 1e38, so that the update is finite as float"};
}  // namespace reasons

namespace detail {
/// Base of options with an argument that may be wrong: `refusal` is then the reason.
template <class I>
struct initializer_option {};
template <class I>
  requires(!initializer<I>)
struct initializer_option<I> {
  static constexpr const reason& refusal = reasons::initializers_have_a_name_and_fill_of_values_a_shape_and_a_philox;
};

template <class I>
constexpr void start_with(parameter& p, std::string_view name) {
  if constexpr (initializer<I>)
    if (p.name == name) p.start = &info_of_initializer<I>;
}
/// The update computes with twice the factor of w^2, as float.
constexpr bool is_penalty_factor(double factor) { return is_float_from_0(2 * factor); }
template <class Penalty>
concept has_penalty = requires { requires std::convertible_to<decltype(Penalty::value), penalty>; };
template <class Penalty>
concept right_penalty = has_penalty<Penalty> && is_penalty_factor(Penalty::value.l1) && is_penalty_factor(Penalty::value.l2);
template <class Penalty>
struct penalty_option {};
template <class Penalty>
  requires(!right_penalty<Penalty>)
struct penalty_option<Penalty> {
  static constexpr const reason& refusal =
      has_penalty<Penalty> ? reasons::a_penalty_must_be_at_least_0_and_at_most_1e38 : reasons::regularizers_are_l1_l2_or_l1_l2;
};
template <class Penalty>
constexpr void penalize(parameter& p, std::string_view name) {
  if constexpr (has_penalty<Penalty>)
    if (p.name == name) p.regularizer = Penalty::value;
}

// Whether a layer with these settings has the parameter.
template <class Settings>
concept with_kernel = requires { typename Settings::owns_kernel; };
template <class Settings>
concept with_bias = requires(Settings s) { s.bias; };
template <class Settings>
concept with_embeddings = requires { typename Settings::owns_embeddings; };
template <class Settings>
concept with_gamma = requires(Settings s) { s.scale; };
template <class Settings>
concept with_beta = requires(Settings s) { s.center; };
}  // namespace detail

template <class I>
struct kernel_initializer : detail::initializer_option<I> {
  static constexpr void configure(detail::with_kernel auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::start_with<I>(p, "kernel"); }
};
template <class I>
struct bias_initializer : detail::initializer_option<I> {
  static constexpr void configure(detail::with_bias auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::start_with<I>(p, "bias"); }
};
template <class I>
struct embeddings_initializer : detail::initializer_option<I> {
  static constexpr void configure(detail::with_embeddings auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::start_with<I>(p, "embeddings"); }
};
template <class I>
struct gamma_initializer : detail::initializer_option<I> {
  static constexpr void configure(detail::with_gamma auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::start_with<I>(p, "gamma"); }
};
template <class I>
struct beta_initializer : detail::initializer_option<I> {
  static constexpr void configure(detail::with_beta auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::start_with<I>(p, "beta"); }
};

/// A penalty on the kernel, added to the loss: l1<...>, l2<...> or l1_l2<...>.
template <class Penalty>
struct kernel_regularizer : detail::penalty_option<Penalty> {
  static constexpr void configure(detail::with_kernel auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::penalize<Penalty>(p, "kernel"); }
};
template <class Penalty>
struct bias_regularizer : detail::penalty_option<Penalty> {
  static constexpr void configure(detail::with_bias auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::penalize<Penalty>(p, "bias"); }
};
template <class Penalty>
struct embeddings_regularizer : detail::penalty_option<Penalty> {
  static constexpr void configure(detail::with_embeddings auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::penalize<Penalty>(p, "embeddings"); }
};
template <class Penalty>
struct gamma_regularizer : detail::penalty_option<Penalty> {
  static constexpr void configure(detail::with_gamma auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::penalize<Penalty>(p, "gamma"); }
};
template <class Penalty>
struct beta_regularizer : detail::penalty_option<Penalty> {
  static constexpr void configure(detail::with_beta auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::penalize<Penalty>(p, "beta"); }
};

/// Penalty Factor * sum |w|. The default is Keras'.
template <core::decimal Factor = core::decimal(1, -2)>
struct l1 {
  static constexpr core::penalty value{Factor.value(), 0};
};
/// Penalty Factor * sum w^2. The default is Keras'.
template <core::decimal Factor = core::decimal(1, -2)>
struct l2 {
  static constexpr core::penalty value{0, Factor.value()};
};
/// Penalty L1 * sum |w| + L2 * sum w^2. The defaults are Keras'.
template <core::decimal L1 = core::decimal(1, -2), core::decimal L2 = core::decimal(1, -2)>
struct l1_l2 {
  static constexpr core::penalty value{L1.value(), L2.value()};
};

namespace core {
/// An operation that may be an option of a layer, as relu in dense<64, relu>. It then follows the layer's own operation.
template <class O>
concept activation_operation = operation<O> && requires { typename O::is_activation; };

template <class O, class Settings>
concept configures = requires(Settings& s) { O::configure(s); };
/// A known option whose value is invalid.
template <class O>
concept refused_option = requires { O::refusal; };
template <class O>
concept adjusts_parameters = requires(parameter& p) { O::adjust(p); };
}  // namespace core

namespace reasons {
inline constexpr reason the_layer_does_not_know_this_option{"the layer does not know this option"};
inline constexpr reason a_layer_takes_one_activation{
    "a layer takes one activation: write the second one as activation<...> after it"};
inline constexpr reason the_layer_takes_no_activation{"the layer takes no activation: write activation<...> after it"};
}  // namespace reasons

namespace core {
/// Base of layers with options. A layer takes an option that configures its settings, and an activation if the settings declare
/// `using takes_activation = void`. The network reports a wrong option, because it has the layer's index.
template <class Settings, class... Options>
struct layer_options {
 private:
  static constexpr bool knows[sizeof...(Options) + 1] = {configures<Options, Settings>..., false};
  static constexpr bool activates[sizeof...(Options) + 1] = {activation_operation<Options>..., false};
  static constexpr bool refused[sizeof...(Options) + 1] = {refused_option<Options>..., false};
  static constexpr bool takes_activation = requires { typename Settings::takes_activation; };

  static constexpr int first_misused() {
    for (int i = 0, activations = 0; i < int(sizeof...(Options)); ++i) {
      if (activates[i] ? !takes_activation || ++activations > 1 : !knows[i] || refused[i]) return i;
    }
    return -1;
  }
  /// The reason that an option gives for its invalid value, if its layer takes the option.
  template <class O>
  static constexpr const reason* why_refused() {
    if constexpr (refused_option<O> && configures<O, Settings>)
      return &O::refusal;
    else
      return nullptr;
  }
  static constexpr const reason& why_misused(int option) {
    const reason* const own[] = {why_refused<Options>()..., nullptr};
    if (option < 0 || !activates[option])
      return option >= 0 && own[option] ? *own[option] : reasons::the_layer_does_not_know_this_option;
    return takes_activation ? reasons::a_layer_takes_one_activation : reasons::the_layer_takes_no_activation;
  }
  /// An activation with an operation of its own; `linear` needs none.
  template <class O>
  struct is_activation : std::bool_constant<activation_operation<O> && !traits_of<O>.is_view> {};

 public:
  using options = type_list<Options...>;
  /// Index of the first wrong option; -1 if there is none.
  static constexpr int misused_option = first_misused();
  static constexpr const reason& misuse = why_misused(misused_option);

  static constexpr Settings configured(Settings s) {
    (
        [&] {
          if constexpr (configures<Options, Settings>) Options::configure(s);
        }(),
        ...);
    return s;
  }
  static constexpr void adjust([[maybe_unused]] parameter& p) {
    (
        [&] {
          if constexpr (adjusts_parameters<Options>) Options::adjust(p);
        }(),
        ...);
  }

 protected:
  /// The activation among the options, as a list of no or one operation.
  using activations = detail::filter_t<is_activation, Options...>;
};
}  // namespace core

}  // namespace strata
