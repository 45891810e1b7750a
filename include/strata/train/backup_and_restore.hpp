// backup_and_restore: an interrupted fit that is started again continues where it was, to the same bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/io/lock_file.hpp>
#include <strata/io/snapshot_files.hpp>
#include <strata/train/fit_session.hpp>
#include <strata/train/position_text.hpp>
#include <strata/train/signal_watch.hpp>
#include <strata/train/snapshot.hpp>
#include <strata/train/training_session.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace strata {

/// When to save; 0: never. Both may be set. A SIGTERM saves in any case.
struct backup_options {
  int save_every_epochs = 1;
  long save_every_batches = 0;
  bool delete_checkpoint = true;  // at the end of the training
};

/// `fit(source, epochs(5), backup_and_restore{"folder"})`: saves snapshots of the training into a folder of its own. After an
/// interruption of any kind, the same program started again continues from the last snapshot and ends with the same weights and
/// the same history, bit for bit, as without the interruption; also with other numbers of threads and processes, if the number of
/// leaves is set. (For bf16_gradients see docs/multi_worker_mirrored.md. The state of each stateful_callback is saved. A data set
/// without resume_at is read again from the start of the epoch.)
///
/// After a SIGTERM fit finishes the step, saves, and returns; `interrupted()` is true then, and for callbacks
/// `training_state::interrupted`. If several processes train together, a signal to one of them ends all after the same step. Only
/// the chief reads and writes files; it sends the others what it has read, so the folder need not be shared.
///
/// While fit runs, the folder belongs to it: another training that uses it, in any process, is an error that names the host and
/// the process. A snapshot replaces the previous one when it is complete; the previous one is kept as well. If the newest is
/// damaged, a line on standard error says so, the file is renamed, and the previous one is used. Throws strata_error for
/// settings that make no sense, before the first epoch, if both are damaged, if the snapshot belongs to another training, and if
/// one cannot be written; the older ones stay.  https://keras.io/api/callbacks/backup_and_restore
struct backup_and_restore {
  std::filesystem::path folder;
  backup_options options{};

  /// State of a training, not a setting.
  struct state_of_fit {
    bool interrupted = false;
    detail::termination_watch* watch = nullptr;  // owned by the session: it ends with fit
    io::lock_file* lock = nullptr;               // likewise; the chief holds it
  } fit{};

  /// Whether the last fit ended early, because this process or another one of the training got SIGTERM. Its state is saved.
  bool interrupted() const { return fit.interrupted; }

  /// The files of the newest snapshot and of the previous one.
  std::filesystem::path newest() const { return files().newest(); }
  std::filesystem::path previous() const { return files().previous(); }

  // The hooks of a session_callback.

  void restore(training_session& session) {
    if (folder.empty()) throw_error("backup_and_restore: a folder is needed");
    if (options.save_every_epochs < 0 || options.save_every_batches < 0)
      throw_error({"backup_and_restore: save_every_epochs is ", options.save_every_epochs, " and save_every_batches ",
                   options.save_every_batches, ", but neither may be negative"});
    fit.interrupted = false;
    auto watch = std::make_shared<detail::termination_watch>();
    fit.watch = watch.get();
    session.keep(std::move(watch));
    auto lock = std::make_shared<io::lock_file>();
    fit.lock = lock.get();
    session.keep(std::move(lock));
    session.group.vote(false);
    if (session.group.is_late()) return;  // late_workers receives the state from the others

    std::string found, complaint;
    std::exception_ptr failure;
    if (session.group.is_chief()) {
      STRATA_TRY {
        const core::announced_work reads(session.group, "reads a snapshot");
        hold_folder();
        found = read_newest(session.fit);
      }
      STRATA_CATCH(const std::exception& e) {
        complaint = e.what();
        failure = std::current_exception();
      }
    }
    broadcast(session.group, complaint);
    if (failure) std::rethrow_exception(failure);
    if (!complaint.empty()) throw_error({"the chief could not restore the training: ", complaint});
    broadcast(session.group, found);
    if (found.empty()) return;
    for (const core::resumable_fit::array& a : session.fit.arrays()) session.group.broadcast(a.bytes);
    session.fit.resume_at(detail::position_of(detail::unpacked(found), newest().string()));
  }

  void after_step(training_session& session) {
    session.group.vote(asked_to_stop(session));
    const long every = options.save_every_batches;
    if (session.group.vote_result())
      interrupt(session);
    else if (every > 0 && session.state.reaches_multiple_of(every))
      save(session.fit, session.group);
  }

  void after_epoch(training_session& session) {
    const int every = options.save_every_epochs;
    if (session.group.any(asked_to_stop(session)))
      interrupt(session);
    else if (every > 0 && (session.state.epoch + 1) % every == 0)
      save(session.fit, session.group);
  }

  void after_training(training_session& session) {
    if (fit.interrupted || !options.delete_checkpoint || !session.group.is_chief()) return;
    files().remove_all();
    fit.lock->release();
    std::error_code ignored;
    std::filesystem::remove(folder, ignored);  // if nothing else is in it
  }

 private:
  io::snapshot_files files() const { return io::snapshot_files(folder / "snapshot.safetensors"); }
  bool asked_to_stop(const training_session& session) const { return fit.watch->requested() || session.state.asked_to_stop; }

  void save(core::resumable_fit& saved, core::any_process_group& group) {
    saved.drop_rounding_errors();  // a training that resumes from this snapshot starts without them, too
    saved.collect_slices();
    if (!group.is_chief()) return;
    const core::announced_work saves(group, "saves a snapshot");
    if (!*fit.lock) hold_folder();  // this process has become the chief after the first one failed
    detail::write_unfinished_snapshot(files().unfinished(), saved);
    files().replace();
  }

  /// Throws strata_error if another training uses the folder, or if it cannot be made.
  void hold_folder() const {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw_error({"cannot create the folder ", folder.string(), ": ", failure.message()});
    files().hold(*fit.lock, folder);
  }

  void interrupt(training_session& session) {
    save(session.fit, session.group);
    session.group.barrier();  // no process ends before the chief has saved
    fit.watch->acknowledge();
    fit.interrupted = session.state.interrupted = session.state.stop_training = true;
  }

  /// Reads the arrays of the newest undamaged snapshot, and returns its metadata. Empty if there is no snapshot.
  std::string read_newest(core::resumable_fit& restored) {
    const auto [file, damages] = files().recover([](const std::filesystem::path& each) {
      const std::string damage = core::damage_of_snapshot(each);
      return damage.empty() ? damage : detail::text_of({each.string(), " is damaged: ", damage});
    });
    if (file.empty() && !damages.empty())
      throw_error(
          {damages, ": there is no snapshot left to continue from (without these files the training starts from the beginning)"});
    if (file.empty()) return {};
    if (!damages.empty()) std::cerr << damages << "; the training continues from " << file.string() << std::endl;
    return detail::packed(core::load_snapshot(file, restored));
  }

  /// Replaces the text in all processes by that of the chief.
  static void broadcast(core::any_process_group& group, std::string& text) {
    std::uint64_t size = text.size();
    group.broadcast(std::as_writable_bytes(std::span(&size, 1)));
    text.resize(std::size_t(size));
    group.broadcast(std::as_writable_bytes(std::span(text)));
  }
};
static_assert(core::session_callback<backup_and_restore>);

}  // namespace strata
