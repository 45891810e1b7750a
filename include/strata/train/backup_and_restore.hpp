// backup_and_restore: an interrupted fit that is started again goes on where it was, to the same bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <strata/base/error.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/snapshot.hpp>
#include <strata/train/termination_watch.hpp>
#include <strata/train/training_session.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace strata {

/// When to save, 0: not; both may be set. A SIGTERM saves in any case.
struct backup_options {
  int save_every_epochs = 1;
  long save_every_batches = 0;
  bool delete_checkpoint = true;  // at the end of the training
};

/// `fit(source, epochs(5), backup_and_restore{"folder"})`: saves the training into a folder of its own while it goes on. If that is
/// interrupted, by whatever, the same program started again goes on from the last snapshot and ends with the same weights and the
/// same history, bit for bit, as if nothing had happened; also with other numbers of threads and processes, if the number of leaves
/// is set. (For bf16_gradients see docs/multi_worker_mirrored.md. What callbacks remember is theirs to save. A data set without resume_at is read again from the start of the epoch.)
///
/// SIGTERM lets fit finish the step, save, and return: `interrupted()` says so, to callbacks `training_state::interrupted`. Of several
/// processes that train together, one that gets the signal is enough; all end behind the same step. Only the chief reads and writes,
/// and tells the others what it has read, so that they need no common folder.
///
/// A snapshot replaces the one before only when it is complete, and that one is kept as well. If the last one turns out to be damaged,
/// a line on the standard error stream says so, it is set aside, and the one before is taken. Throws strata::error if there is none,
/// if the snapshot belongs to another training, and if one cannot be written; the older ones stay.
/// https://keras.io/api/callbacks/backup_and_restore
class backup_and_restore {
 public:
  explicit backup_and_restore(std::filesystem::path folder, backup_options options = {}) : folder_(std::move(folder)), options_(options) {
    if (folder_.empty()) throw error("backup_and_restore: a folder is needed");
    if (options_.save_every_epochs < 0 || options_.save_every_batches < 0)
      throw error("backup_and_restore: save_every_epochs is " + std::to_string(options_.save_every_epochs) + " and save_every_batches " +
                  std::to_string(options_.save_every_batches) + ", but neither may be negative");
  }

  /// The last fit ended before it was done, because the process or one that trains with it got SIGTERM. All is saved.
  bool interrupted() const { return interrupted_; }

  /// The latest snapshot, and the one before.
  std::filesystem::path newest() const { return folder_ / "snapshot.safetensors"; }
  std::filesystem::path previous() const { return folder_ / "snapshot.previous.safetensors"; }

  // What fit calls.

  void restore(training_session& session) {
    interrupted_ = false;
    auto watch = std::make_shared<detail::termination_watch>();
    watch_ = watch.get();
    session.keep(std::move(watch));
    session.wish(false);
    if (session.is_late()) return;  // the others tell it where they are

    std::string found, complaint;
    std::exception_ptr failure;
    if (session.is_chief()) {
      try {
        found = read_newest(session);
      } catch (const std::exception& e) {
        complaint = e.what();
        failure = std::current_exception();
      }
    }
    tell(session, complaint);
    if (failure) std::rethrow_exception(failure);
    if (!complaint.empty()) throw error("the chief could not restore the training: " + complaint);
    tell(session, found);
    if (found.empty()) return;
    for (const training_session::array& a : session.arrays()) session.broadcast(a.numbers);
    session.resume_at(detail::position_of(nlohmann::json::parse(found).get<safetensors_metadata>(), newest().string()));
  }

  void after_step(training_session& session) {
    session.wish(watch_->requested());
    const long every = options_.save_every_batches;
    if (session.wished())
      interrupt(session);
    else if (every > 0 && session.state().step % every == 0)
      save(session);
  }

  void after_epoch(training_session& session) {
    const int every = options_.save_every_epochs;
    if (session.any(watch_->requested()))
      interrupt(session);
    else if (every > 0 && (session.state().epoch + 1) % every == 0)
      save(session);
  }

  void after_training(training_session& session) {
    if (interrupted_ || !options_.delete_checkpoint || !session.is_chief()) return;
    std::error_code ignored;
    std::filesystem::remove(newest(), ignored);
    std::filesystem::remove(previous(), ignored);
    std::filesystem::remove(folder_, ignored);  // if nothing else is in it
  }

 private:
  void save(training_session& session) const {
    session.forget_rounding();  // as one that begins with this snapshot has
    if (!session.is_chief()) return;
    std::error_code failure;
    std::filesystem::create_directories(folder_, failure);
    if (failure) throw error("cannot make the folder " + folder_.string() + ": " + failure.message());
    detail::write_unfinished_snapshot(newest(), session);
    if (std::filesystem::exists(newest())) detail::rename_file(newest(), previous());
    detail::rename_durably(detail::unfinished(newest()), newest());
  }

  void interrupt(training_session& session) {
    save(session);
    session.any(false);  // nobody leaves before the chief has saved
    watch_->heed();
    interrupted_ = session.state().interrupted = session.state().stop_training = true;
  }

  /// Of the newest snapshot that is whole: its metadata; its arrays are in the session. Empty if there is no snapshot.
  std::string read_newest(training_session& session) const {
    remove_leftovers();
    std::string damages;
    for (const std::filesystem::path& file : {newest(), previous()}) {
      if (!std::filesystem::exists(file)) continue;
      const std::string damage = damage_of_snapshot(file);
      if (damage.empty()) {
        if (!damages.empty()) {
          std::cerr << damages << "; the training goes on from " << file.string() << std::endl;
          // Out of the way: the next save would put it into the place of the good one.
          detail::rename_durably(newest(), folder_ / "snapshot.damaged.safetensors");
        }
        return nlohmann::json(load_snapshot(file, session)).dump();
      }
      damages += (damages.empty() ? "" : ", and ") + file.string() + " is damaged: " + damage;
    }
    if (!damages.empty()) throw error(damages + ": there is no snapshot left to go on from (without these files the training starts anew)");
    return {};
  }

  /// What a process left that was killed while it wrote.
  void remove_leftovers() const {
    std::error_code ignored;
    std::filesystem::remove(detail::unfinished(newest()), ignored);
    for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored))
      if (entry.path().filename().string().starts_with(".strata-")) std::filesystem::remove(entry.path(), ignored);
  }

  /// Gives all processes the text of the chief.
  static void tell(training_session& session, std::string& text) {
    std::uint64_t size = text.size();
    session.broadcast(std::as_writable_bytes(std::span(&size, 1)));
    text.resize(std::size_t(size));
    session.broadcast(std::as_writable_bytes(std::span(text)));
  }

  std::filesystem::path folder_;
  backup_options options_;
  bool interrupted_ = false;
  detail::termination_watch* watch_ = nullptr;  // the session's: it ends with fit
};
static_assert(session_callback<backup_and_restore>);

}  // namespace strata
