// A snapshot: all that decides how a fit continues, in one safetensors file with a checksum.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <span>
#include <strata/base/arithmetic.hpp>
#include <strata/io/durable_rename.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/os.hpp>
#include <strata/io/safetensors.hpp>
#include <strata/io/snapshot_files.hpp>
#include <strata/train/position_text.hpp>
#include <strata/train/snapshot_file.hpp>
#include <strata/train/training_session.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata {

namespace detail {

/// Writes the snapshot to a file that the caller then renames.
inline void write_unfinished_snapshot(const std::filesystem::path& beside, resumable_fit& fit) {
  const std::vector<resumable_fit::array> arrays = fit.arrays();
  const dtype type = fit.element_size() == sizeof(double) ? dtype::F64 : dtype::F32;
  checksum sum = 0;
  std::vector<safetensor> tensors;
  for (const auto& a : arrays) tensors.push_back({a.name, type, a.extents, a.bytes});
  tensors.push_back(safetensor::of(checksum_tensor, {}, std::span(&sum, 1)));
  safetensors_metadata metadata = texts_of(fit.position());
  metadata[snapshot_version_key] = snapshot_version;
  metadata[arithmetic_key] = text_of_arithmetic();
  metadata["description"] = joined_lines(fit.description());
  write_safetensors(beside, tensors, metadata, io::existing_link::replaced);

  const io::file_descriptor opened = io::open_own(beside);
  const io::mapped_file written(beside);
  sum = checksum_of(written.bytes());
  const std::size_t place = written.bytes().size() - sizeof sum;
  if (io::os::write_at(opened.number(), &sum, sizeof sum, place) != sizeof sum || !io::os::flush(opened.number()))
    io::fail_on_file("write", beside, errno);
}

}  // namespace detail

namespace core {
/// Writes the state of a fit. Either the file is complete, or an older one is unchanged. Throws strata_error naming the
/// file. Format: safetensors with each parameter under its name, the optimizer's slots as optimizer/0/dense/kernel, the arrays of
/// callbacks as callback/early_stopping/0/dense/kernel, and the position as metadata. The last four bytes, a tensor of their own,
/// are the CRC-32C of all bytes before them.
inline void save_snapshot(const std::filesystem::path& file, resumable_fit& fit) {
  const std::filesystem::path beside = io::snapshot_files(file).unfinished();
  detail::write_unfinished_snapshot(beside, fit);
  io::rename_durably(beside, file);
}

/// Reads weights and slots into the arrays of the fit, and returns the metadata, from which `position_of` makes a position.
/// Throws strata_error if the file is damaged, or if it belongs to a training with another network, optimizer, seed, data
/// set,
/// ...; then nothing has changed. A line on standard error reports a snapshot from a build with other arithmetic.
inline safetensors_metadata load_snapshot(const std::filesystem::path& file, resumable_fit& fit) {
  if (const std::string damage = damage_of_snapshot(file); !damage.empty()) throw_error(file.string() + " is damaged: " + damage);
  const safetensors_file opened(file);
  const safetensors_metadata& metadata = opened.metadata();
  const auto version = metadata.find(detail::snapshot_version_key);
  if (version == metadata.end()) throw_error(file.string() + ": this is not a snapshot of a training");
  if (version->second != detail::snapshot_version)
    throw_error({file.string(), ": a snapshot of version ", detail::quoted(version->second), ", but this program reads version ",
                 detail::snapshot_version});

  const auto described = metadata.find("description");
  const std::vector<std::string> theirs = detail::lines_of(described == metadata.end() ? "" : described->second);
  if (const std::string difference = detail::difference_of(theirs, fit.description()); !difference.empty())
    throw_error(file.string() + ": this snapshot belongs to another training: " + difference);
  (void)detail::position_of(metadata, file.string());

  const std::vector<resumable_fit::array> arrays = fit.arrays();
  const dtype type = fit.element_size() == sizeof(double) ? dtype::F64 : dtype::F32;
  std::vector<std::vector<std::byte>> loaded;
  for (const auto& a : arrays) {
    const safetensors_file::entry& e = opened[a.name];
    if (e.type != type || e.extents != a.extents || e.bytes != a.bytes.size())
      throw_error(file.string() + ": tensor '" + a.name + "' is not what the training has");
    loaded.push_back(opened.bytes(a.name));
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) std::ranges::copy(loaded[i], arrays[i].bytes.begin());
  const auto arithmetic = metadata.find(detail::arithmetic_key);
  std::clog << detail::notice_of_arithmetic(file.string(), arithmetic == metadata.end() ? "" : arithmetic->second);
  return metadata;
}
}  // namespace core

}  // namespace strata
