// training_secret: a secret that only the processes of a training have.
#pragma once
#include <algorithm>
#include <optional>
#include <strata/base/environment.hpp>
#include <strata/base/error.hpp>
#include <strata/io/open_file.hpp>
#include <strata/net/endpoint.hpp>
#include <string>
#include <string_view>

namespace strata {

/// At least 128 random bits, as hexadecimal digits: `openssl rand -hex 16` makes one. `examples/launch` makes one for each
/// training and passes it to all processes in STRATA_SECRET.
class training_secret {
  std::string digits_;

 public:
  static constexpr std::size_t least_digits = 32, most_digits = 1024;

  /// Throws strata_error, which names `where` and does not quote the text, if it is not a secret.
  explicit training_secret(std::string_view text, std::string_view where = "the secret of the training") {
    const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    const auto is_digit = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f') || ('A' <= c && c <= 'F'); };
    if (text.size() < least_digits || text.size() > most_digits || !std::ranges::all_of(text, is_digit))
      throw_error({where, " is not ", least_digits, " or more hexadecimal digits: make one with openssl rand -hex 16"});
    digits_ = text;
  }
  const std::string& digits() const { return digits_; }
};

namespace detail {
inline constexpr auto secret_variable = "STRATA_SECRET", secret_file_variable = "STRATA_SECRET_FILE";

/// The secret in the environment variable STRATA_SECRET, or in the file that STRATA_SECRET_FILE names; nothing if neither is set.
/// Throws strata_error if it is not a secret, if the file cannot be read or others can read it, or if both are set and
/// differ.
inline std::optional<training_secret> secret_of_environment() {
  std::optional<training_secret> of_text, of_file;
  if (const std::string text = environment_variable(secret_variable); !text.empty()) of_text.emplace(text, secret_variable);
  if (const std::string path = environment_variable(secret_file_variable); !path.empty()) try {
      of_file.emplace(io::secret_content_of(path, training_secret::most_digits + 2), path);
    } catch (const strata_error& e) {
      throw_error({secret_file_variable, ": ", e.what()});
    }
  if (of_text && of_file && lower_case(of_text->digits()) != lower_case(of_file->digits()))
    throw_error({secret_variable, " differs from the secret in the file of ", secret_file_variable, ": unset one of them"});
  return of_text ? of_text : of_file;
}
}  // namespace detail

}  // namespace strata
