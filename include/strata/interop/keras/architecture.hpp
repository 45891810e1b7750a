// The architecture in a file of Keras, as JSON.
// needs: hdf5 libzip
#pragma once
#include <cstddef>
#include <filesystem>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/json.hpp>
#include <strata/base/text.hpp>
#include <strata/interop/hdf5.hpp>
#include <strata/io/file_kind.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/zip_archive.hpp>
#include <string>
#include <string_view>

namespace strata::keras {

/// `file` is the name of the file in errors. Copies of JSON recurse, and a value takes many times the memory of its text, so
/// depth and size have limits. Throws strata_error unless the text is an object within these limits with distinct keys.
inline nlohmann::json parse_architecture(std::string_view file, std::string_view text) {
  using json = nlohmann::json;
  constexpr int most_levels = 200;
  constexpr std::size_t most_bytes = 16 << 20;
  if (text.size() > most_bytes) throw_error({file, ": its architecture has ", text.size(), " bytes, more than ", most_bytes});
  json config;
  STRATA_TRY { config = detail::parse_json(detail::text_of({file, ": its architecture"}), text, most_levels); }
  STRATA_CATCH(const json::exception& e) {}
  if (!config.is_object()) throw_error({file, ": its architecture is not a JSON object with finite numbers"});
  return config;
}

/// config.json of an archive of Keras.
inline nlohmann::json architecture_of(const io::zip_archive& archive) {
  const io::zip_bytes member = archive.read("config.json");
  return parse_architecture(archive.path().string(), {reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size()});
}

/// config.json of a .keras file, the model_config of a .h5 file, or the text of model.to_json(), whatever their names. Throws
/// strata_error if the file has none.
inline nlohmann::json read_architecture(const std::filesystem::path& path) {
  const io::file_kind kind = io::kind_of_file(path);
  if (kind == io::file_kind::zip || (kind == io::file_kind::other && path.string().ends_with(".keras")))
    return architecture_of(io::zip_archive(path, "a .keras archive"));
  if (kind != io::file_kind::hdf5) {
    const std::string text = io::content_of(path);
    if (text.starts_with('{')) return parse_architecture(path.string(), text);
  }
  const hdf5_file file(path);
  const auto attribute = file.texts("", "model_config");
  if (!attribute || attribute->size() != 1)
    throw_error({path.string(),
                 ": has weights, but no architecture: give the .keras or .h5 file of the whole model, or what "
                 "model.to_json() returns"});
  nlohmann::json config = parse_architecture(path.string(), attribute->front());
  if (const auto version = file.texts("", "keras_version"); version && version->size() == 1)
    config["keras_version"] = version->front();
  return config;
}

}  // namespace strata::keras
