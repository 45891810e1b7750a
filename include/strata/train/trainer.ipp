// The functions of trainer that check their arguments, each with at most one diagnostic.
#pragma once

namespace strata {

template <class Program, class Strategy>
template <class... Extra>
trainer<Program, Strategy>::trainer(network, typename Program::optimizer optimizer, typename Program::loss, const Extra&... extra)
    : model(std::move(optimizer), extra...) {
  static_assert(detail::diagnosed<detail::extras_verdict<Extra...>>[0]);
}

template <class Program, class Strategy>
template <class Source, class... Options>
training_history trainer<Program, Strategy>::fit(Source&& source, Options&&... options) {
  using sentence = typename detail::fit_verdict_with<Strategy, Program, std::remove_cvref_t<Source>, Options...>::type;
  static_assert(detail::diagnosed<sentence>[0]);
  if constexpr (std::is_same_v<sentence, detail::no_complaint>)
    if (!serve()) return training_.fit_source(source, options...);
  return {};
}

template <class Program, class Strategy>
template <detail::array_argument X, detail::array_argument Y, class... Options>
training_history trainer<Program, Strategy>::fit(X&& x, Y&& y, Options&&... options) {
  using sentence = typename detail::fit_verdict<Program, detail::given_arrays<X, Y>, Options...>::type;
  static_assert(detail::diagnosed<sentence>[0]);
  training_history past;
  if constexpr (std::is_same_v<sentence, detail::no_complaint>)
    if (!serve())
      training_.telling_errors([&] {
        past = training_.fit_samples(detail::with_weights("fit", detail::samples_of_arrays<Program>("fit", x, y), options...),
                                     options...);
      });
  return past;
}

template <class Program, class Strategy>
template <class Source, class... Options>
auto trainer<Program, Strategy>::evaluate(Source&& source, Options&&... options) -> evaluation {
  using sentence = typename detail::evaluate_verdict<Program, std::remove_cvref_t<Source>, Options...>::type;
  static_assert(detail::diagnosed<sentence>[0]);
  if constexpr (std::is_same_v<sentence, detail::no_complaint>)
    return training_.evaluate_source(source, options...);
  else
    return {};
}

template <class Program, class Strategy>
template <detail::array_argument X, detail::array_argument Y, class... Options>
auto trainer<Program, Strategy>::evaluate(X&& x, Y&& y, Options&&... options) -> evaluation {
  using sentence = typename detail::evaluate_verdict<Program, detail::given_arrays<X, Y>, Options...>::type;
  static_assert(detail::diagnosed<sentence>[0]);
  evaluation out;
  if constexpr (std::is_same_v<sentence, detail::no_complaint>)
    training_.telling_errors([&] {
      out = training_.evaluate_samples(
          detail::with_weights("evaluate", detail::samples_of_arrays<Program>("evaluate", x, y), options...), options...);
    });
  return out;
}

template <class Program, class Strategy>
template <detail::array_argument X, class... Options>
  requires(!detail::array_argument<Options> && ...)
auto trainer<Program, Strategy>::predict(const X& x, Options&&... options) -> predictions<T, network::output_shape> {
  using sentence = typename detail::predict_verdict<Program, detail::arrays<X, void>, Options...>::type;
  static_assert(detail::diagnosed<sentence>[0]);
  predictions<T, network::output_shape> out;
  if constexpr (std::is_same_v<sentence, detail::no_complaint>) {
    const detail::values_of_array<T, network::input_shape> rows(x);
    const std::span<const T> values = rows.values();
    out.values.resize(values.size() / std::size_t(network::input_shape.size()) * std::size_t(network::output_shape.size()));
    training_.predict_checked(
        [&](const auto& predict_batch) {
          training_.predict_in_memory(values, out.values, [&](const core::samples<T>& piece, T* to) {
            predict_batch(piece.count, [&] { executor().predict(piece, to); });
          });
        },
        options...);
  }
  return out;
}

template <class Program, class Strategy>
template <class Source, class... Options>
  requires(!detail::array_argument<Source>)
auto trainer<Program, Strategy>::predict(Source&& source, Options&&... options) -> predictions<T, network::output_shape> {
  using sentence = typename detail::predict_verdict<Program, std::remove_cvref_t<Source>, Options...>::type;
  static_assert(detail::diagnosed<sentence>[0]);
  predictions<T, network::output_shape> out;
  if constexpr (std::is_same_v<sentence, detail::no_complaint>)
    detail::with_source(source, [&](auto& from) {
      executor().prepare(core::batch_size_of(from), core::purpose::inference);
      detail::stream_over<T, std::remove_reference_t<decltype(from)>> stream(from);  // of all rows
      stream.start(0);
      training_.predict_checked(
          [&](const auto& predict_batch) {
            for (core::samples<T> batch; stream.next(batch);) {
              const std::size_t before = out.values.size(), size = std::size_t(network::output_shape.size());
              core::refuse_other_rows<Program>(batch, {0, batch.count},
                                               detail::names_in_stream<T>(stream, batch.count, long(before / size)));
              out.values.resize(before + std::size_t(batch.count) * size);
              predict_batch(batch.count, [&] { executor().predict({batch.x(), batch.count}, out.values.data() + before); });
            }
          },
          options...);
    });
  return out;
}

template <class Program, class Strategy>
template <class Source>
void trainer<Program, Strategy>::adapt(Source&& source) {
  using sentence = detail::first_complaint<typename detail::data_verdict<Program, std::remove_cvref_t<Source>, false>::type,
                                           typename detail::adapt_verdict<network>::type>;
  static_assert(detail::diagnosed<sentence>[0]);
  if constexpr (std::is_same_v<sentence, detail::no_complaint>)
    detail::with_source(source, [&](auto& from) {
      if (data::detail::shards_of(from) > 1)
        throw_error("adapt: this process would read a share of the data: adapt before shard");
      detail::stream_over<T, std::remove_reference_t<decltype(from)>> stream(from);  // of all rows
      static constexpr auto layers = detail::adapting_layers<network>();
      detail::adapt_to<T>(stream, network::input_shape.size(), layers, executor().parameters());
      executor().parameters_changed();
    });
}

}  // namespace strata
