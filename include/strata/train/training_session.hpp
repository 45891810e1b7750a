// A fit under way, without its types: all that decides how it goes on. Backups look at it, and put another one in its place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/precision.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/distribute/executor.hpp>
#include <strata/network/summary.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/logs.hpp>
#include <strata/train/training_state.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// Where a fit stands between two steps: all that decides the rest of it, except weights and the optimizer's slots.
struct training_position {
  long step = 0;               // updates so far, over all epochs
  int epoch = 0;               // under way or, if none is, the next one
  bool in_epoch = false;       // one is under way
  long steps_of_epoch = 0;     // so far
  long samples_of_epoch = 0;
  std::vector<tally> tallies;  // of the epoch so far: the loss, then each metric

  int next_pass = 0;                  // over the data
  bool in_pass = false;               // one has begun, and goes on with the next batch
  long batches_of_pass = 0;           // so far
  std::optional<data_position> data;  // the same, where the source can tell it

  std::optional<double> learning_rate;      // as set by hand; none: what the optimizer says
  std::optional<double> new_learning_rate;  // after this epoch
  bool stop_training = false;               // after this epoch
  history past;                             // of the epochs before this one
};

/// What fit gives to callbacks that have the hooks of a session_callback.
class training_session {
 public:
  /// A parameter, or what the optimizer keeps beside one.
  struct array {
    std::string name;  // dense/kernel; optimizer/0/dense/kernel
    std::vector<std::uint64_t> extents;
    std::span<std::byte> numbers;  // float or double
  };

  training_session(const training_session&) = delete;
  training_session& operator=(const training_session&) = delete;

  /// What has to be the same before and after an interruption, a line each: optimizer, precision, seed, parameters, data set, ...
  virtual std::vector<std::string> description() const = 0;
  /// Bytes of a number of the arrays.
  virtual std::size_t number_size() const = 0;
  virtual std::vector<array> arrays() = 0;
  virtual training_position position() = 0;
  /// The fit goes on from there, with the numbers that the arrays hold by then.
  virtual void resume_at(const training_position&) = 0;
  virtual training_state& state() = 0;

  // Of several processes that train together, all have to call these.
  /// From here on nothing counts but the arrays and the position: residues of rounded gradients are gone.
  virtual void forget_rounding() = 0;
  virtual bool is_chief() const = 0;
  /// Everybody gets the bytes of the chief.
  virtual void broadcast(std::span<std::byte>) = 0;
  /// Whether one of them says so.
  virtual bool any(bool mine) = 0;
  /// Says it along with the next step.
  virtual void wish(bool) = 0;
  /// Whether one of them said so along with the last step: the same answer everywhere.
  virtual bool wished() const = 0;

  // Of an elastic training.
  /// What has to be the same besides in a process that takes part from now on: batches, epochs, steps.
  virtual std::string plan() const = 0;
  /// This process has come when the others were under way, and knows nothing yet.
  virtual bool is_late() const = 0;
  /// Of one that is late: returns when the others have taken it in. Throws communication_error if they do not.
  virtual void enter() = 0;
  /// It knows all that the others know.
  virtual void has_caught_up() = 0;
  /// Of the others, behind a step: takes in those that wait, if there are some. Whether one has come.
  virtual bool take_in() = 0;
  /// Those that have just been taken in get the bytes of the chief.
  virtual void hand_over(std::span<std::byte>) = 0;
  /// How often fit has ended.
  virtual int fits_before() const = 0;
  /// At the end: waits for the others, so that nobody who has still to learn something from them is left alone.
  virtual void farewell() = 0;

  /// Lives until fit is left, also by an exception.
  void keep(std::shared_ptr<void> guest) { guests_.push_back(std::move(guest)); }

 protected:
  training_session() = default;
  ~training_session() = default;

 private:
  std::vector<std::shared_ptr<void>> guests_;
};

namespace detail {

/// Executors of which everything can be told that a step depends on.
template <class E>
concept resumable_executor = requires(E e, std::span<std::byte> bytes) {
  e.slots();
  e.set_step(0L);
  { e.seed() } -> std::convertible_to<std::uint64_t>;
  e.broadcast(bytes);
  { e.largest(1.0) } -> std::same_as<double>;
  e.wish(1.0);
  { e.wished() } -> std::same_as<double>;
  { e.is_late() } -> std::same_as<bool>;
  e.enter();
  e.has_caught_up();
  { e.take_in() } -> std::same_as<bool>;
  e.hand_over(bytes);
  { e.fits_before() } -> std::same_as<int>;
  e.farewell();
};

template <class Trainer>
class session_of final : public training_session {
  using program = typename Trainer::program_type;
  using network = typename Trainer::network;
  using T = typename Trainer::value_type;
  static_assert(resumable_executor<typename Trainer::executor_type>, "the executor of this strategy cannot be interrupted and taken up again");

  Trainer& trainer_;
  batch_stream<T>& stream_;
  training_position& at_;
  training_state& state_;

 public:
  session_of(Trainer& trainer, batch_stream<T>& stream, training_position& at, training_state& state)
      : trainer_(trainer), stream_(stream), at_(at), state_(state) {}

  std::vector<std::string> description() const override {
    std::vector<std::string> lines{std::string("optimizer ") + program::optimizer::name + " with " + std::to_string(slot_count()) + " slots",
                                   "precision " + precision_name(), "loss " + name_of_loss()};
    [&]<class... M>(list<M...>) { (lines.push_back(std::string("metric ") + M::name), ...); }(typename program::metrics{});
    lines.push_back("seed " + std::to_string(trainer_.executor().seed()));
    const std::vector<std::string> names = parameter_names_of<network>();
    for (std::size_t i = 0; i < names.size(); ++i)
      lines.push_back("parameter " + names[i] + ' ' + words_of(slots_of<network>()[i].what.extents));
    lines.push_back("data set " + stream_.order());
    return lines;
  }
  std::size_t number_size() const override { return sizeof(T); }

  std::vector<array> arrays() override {
    std::vector<array> out;
    const std::vector<std::string> names = parameter_names_of<network>();
    const auto add = [&](const std::string& prefix, std::span<T> arena, bool only_trained) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const parameter_slot& slot = slots_of<network>()[i];
        if (only_trained && slot.offset >= trained()) continue;
        std::vector<std::uint64_t> extents;
        for (int axis = 0; axis < slot.what.extents.rank(); ++axis) extents.push_back(std::uint64_t(slot.what.extents[axis]));
        const std::size_t count = std::size_t(slot.what.extents.size());
        out.push_back({prefix + names[i], std::move(extents), std::as_writable_bytes(arena.subspan(std::size_t(slot.offset), count))});
      }
    };
    auto& executor = trainer_.executor();
    add("", executor.parameters(), false);
    for (long k = 0; k < slot_count(); ++k)
      add("optimizer/" + std::to_string(k) + '/', executor.slots().subspan(std::size_t(k * trained()), std::size_t(trained())), true);
    return out;
  }

  training_position position() override {
    training_position now = at_;
    now.step = trainer_.step_;
    now.epoch = state_.epoch + (at_.in_epoch ? 0 : 1);
    if (at_.in_pass) now.data = stream_.where();
    now.learning_rate = trainer_.learning_rate_by_hand_;
    now.new_learning_rate = state_.new_learning_rate;
    now.stop_training = state_.stop_training;
    return now;
  }
  void resume_at(const training_position& from) override {
    if (from.in_epoch && from.tallies.size() != std::tuple_size_v<tallies<program>>)
      throw error("fit: the position has " + std::to_string(from.tallies.size()) + " tallies, but there are " +
                  std::to_string(std::tuple_size_v<tallies<program>>));
    if (from.in_pass) stream_.resume(from.next_pass - 1, from.data, from.batches_of_pass);
    at_ = from;
    trainer_.step_ = state_.step = from.step;
    trainer_.executor().set_step(from.step);
    trainer_.executor().parameters_changed();
    if (from.learning_rate) trainer_.set_learning_rate(*from.learning_rate);
    state_.epoch = from.epoch;
    state_.learning_rate = trainer_.learning_rate();
    state_.new_learning_rate = from.new_learning_rate;
    state_.stop_training = from.stop_training;
  }
  training_state& state() override { return state_; }

  bool is_chief() const override { return trainer_.is_chief(); }
  void forget_rounding() override {
    if constexpr (requires { trainer_.executor().forget_rounding(); }) trainer_.executor().forget_rounding();
  }
  void broadcast(std::span<std::byte> bytes) override { trainer_.executor().broadcast(bytes); }
  bool any(bool mine) override { return trainer_.executor().largest(mine ? 1 : 0) > 0; }
  void wish(bool mine) override { trainer_.executor().wish(mine ? 1 : 0); }
  bool wished() const override { return trainer_.executor().wished() > 0; }

  std::string plan() const override { return to_string(trainer_.plan_); }
  bool is_late() const override { return trainer_.executor().is_late(); }
  void enter() override { trainer_.executor().enter(); }
  void has_caught_up() override { trainer_.executor().has_caught_up(); }
  bool take_in() override { return trainer_.executor().take_in(); }
  void hand_over(std::span<std::byte> bytes) override { trainer_.executor().hand_over(bytes); }
  int fits_before() const override { return trainer_.executor().fits_before(); }
  void farewell() override { trainer_.executor().farewell(); }

 private:
  static constexpr long trained() { return layout_of_program<program>.trainable; }
  long slot_count() const { return trainer_.executor().optimizer().slots(); }

  static std::string words_of(const shape& extents) {
    std::string out = "(";
    for (int i = 0; i < extents.rank(); ++i) out += (i > 0 ? ", " : "") + std::to_string(extents[i]);
    return out + (extents.rank() == 1 ? ",)" : ")");
  }
  static std::string name_of_loss() {
    if constexpr (requires { std::string(program::loss::name); })
      return program::loss::name;
    else
      return "without a name";
  }
  static std::string precision_name() {
    using policy = typename program::precision;
    if constexpr (std::same_as<policy, precision::mixed_bf16>)
      return "mixed_bf16";
    else
      return "f" + std::to_string(8 * sizeof(T)) + (std::same_as<policy, precision::f32> || std::same_as<policy, precision::f64> ? "" : " by another policy");
  }
};

}  // namespace detail

}  // namespace strata
