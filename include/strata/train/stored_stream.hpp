// The batches of a fit whose device keeps the data set: indices of samples.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <strata/base/exceptions.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/program/row_tables.hpp>
#include <strata/train/batch_stream.hpp>
#include <type_traits>
#include <utility>

namespace strata::detail {

/// Whether the devices of an executor can make batches of a source by themselves.
template <class Program, class Executor, class Source>
concept trains_on_stored = !graph_program<Program> && requires(Source& source) {
  requires Executor::traits.keeps_samples;
  source.by_index();
  *source.stored();
  requires std::is_same_v<typename Source::value_type, samples<typename Program::value_type>>;
  requires count_row_tables<Program>() == 0;  // the indices of embeddings are checked in each batch
};

/// Before each pass, checks whether the samples of the source lie in memory, until they do: those of `cache` do after the first
/// pass. From then on, if the devices have room for them, batches are indices. Samples with an invalid label are not stored on
/// the devices: the step that reads one reports it.
template <class T, class Source, class Executor>
class stored_stream final : public stream_over<T, Source> {
  using base = stream_over<T, Source>;

  Executor& executor_;
  long classes_;  // classes of the network, if the loss compares with labels
  enum class state { unknown, kept, refused } state_;

 public:
  stored_stream(Executor& executor, Source& source, const row_choice& rows, long classes, bool may_keep)
      : base(source, rows, executor.writers()),
        executor_(executor),
        classes_(classes),
        state_(may_keep ? state::unknown : state::refused) {}
  [[gnu::cold]] ~stored_stream() {
    if (state_ != state::kept) return;
    STRATA_TRY { executor_.release_samples(); }
    STRATA_CATCH_ALL {}  // the next step reports a device that is lost
  }

  [[gnu::cold]] void start(int pass) override {
    keep();
    base::start(pass);
  }
  [[gnu::cold]] void resume(int pass, const std::optional<data_position>& from, long batches) override {
    keep();
    base::resume(pass, from, batches);
  }

 private:
  [[gnu::cold]] void keep() {
    if (state_ == state::unknown) {
      const std::optional<stored_samples> set = this->source_.stored();
      if (set) state_ = has_classes_only(*set) && executor_.keep_samples(*set) ? state::kept : state::refused;
    }
    this->by_index_ = state_ == state::kept;
  }
  bool has_classes_only(const stored_samples& set) const {
    if (set.truths != label_kind::sparse) return true;
    const long classes = set.classes > 0 ? set.classes : classes_;
    for (std::size_t n = 0; n < set.count; ++n) {
      std::int32_t label;
      std::memcpy(&label, set.row(set.truth, n), sizeof label);
      if (label < 0 || label >= classes) return false;
    }
    return true;
  }
};

/// Defined in train/columns_stream.hpp, which only the trainer of graphs includes.
template <class Program, class Source>
class columns_stream;

/// The batches of a source on which nothing is trained.
template <class Program, class Source>
auto stream_to_read(Source& source, const row_choice& rows, const row_writers& writers) {
  if constexpr (graph_program<Program>)
    return columns_stream<Program, Source>(source, rows, writers);
  else
    return stream_over<typename Program::value_type, Source>(source, rows, writers);
}

/// may_keep: nothing on the host reads the samples of a batch.
template <class Program, class Executor, class Source>
auto stream_to_train(Executor& executor, Source& source, const row_choice& rows, [[maybe_unused]] bool may_keep) {
  if constexpr (trains_on_stored<Program, Executor, Source>) {
    constexpr const auto& t = tape_of<typename Program::items>;
    return stored_stream<typename Program::value_type, Source, Executor>(executor, source, rows,
                                                                         t.nodes[ends_of(t).losses[0]].out.last(), may_keep);
  } else {
    return stream_to_read<Program>(source, rows, executor.writers());
  }
}

}  // namespace strata::detail
