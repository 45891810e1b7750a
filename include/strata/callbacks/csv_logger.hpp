// csv_logger: loss and metrics of each epoch as lines of a CSV file.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <strata/base/error.hpp>
#include <strata/base/exact_text.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/open_file.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/position_text.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata {

struct csv_logger_options {
  char separator = ',';
  bool append = false;  // to an existing file, instead of replacing it
};

/// The columns are epoch, from 0, and the values of the first epoch in alphabetical order, or those that the file has; NA where
/// an epoch lacks one. Each line is in the file when the epoch has ended. Only the chief writes. A training that
/// backup_and_restore continues goes on in the same file, after the lines of the epochs before. Throws strata_error if
/// the file cannot be written, and, before the first epoch, for a separator that is part of a number. A name with a separator in
/// it is written between quotes.  https://keras.io/api/callbacks/csv_logger
struct csv_logger {
  std::filesystem::path path;
  csv_logger_options options{};

  /// State of a training, not a setting.
  struct written_so_far {
    std::vector<std::string> columns{};
    bool appends = false, continues_line = false;  // continues_line_: the file does not end with a line end
  } written{};

  void on_train_begin(training_state& s, fitted_model& model) {
    if (path.empty()) throw_error("csv_logger: a file name is needed");
    if (std::string_view("0123456789+-.einfaNA\"\r\n").find(options.separator) != std::string_view::npos)
      throw_error({"csv_logger: the separator ", detail::quoted({&options.separator, 1}), " can occur in values"});
    written = {.appends = options.append || s.resumed};
    if (!model.group().is_chief()) return;
    if (s.resumed) drop_lines_from(s.epoch);
    if (!written.appends) return;
    const std::string content = content_of_file();
    written.columns = columns_of(content);
    written.continues_line = !content.empty() && content.back() != '\n';
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    if (!model.group().is_chief()) return;
    const bool begins = written.columns.empty();
    if (begins) {
      written.columns.push_back("epoch");
      for (const auto& value : s.values) {
        written.columns.push_back(value.first);
        if (s.skips_validation) written.columns.push_back("val_" + value.first);  // of later epochs
      }
      std::sort(written.columns.begin() + 1, written.columns.end());
      for (const std::string& column : written.columns)
        if (column.find_first_of("\r\n") != column.npos)
          throw_error({"csv_logger: ", detail::quoted(column), " cannot be a column of ", path.string(),
                       ", because it has more than one line"});
    }
    std::error_code failure;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
    if (failure) throw_error({"csv_logger: cannot create the folder ", path.parent_path().string(), ": ", failure.message()});
    std::ofstream file(path, (written.appends ? std::ios::app : std::ios::trunc) | std::ios::binary);
    written.appends = true;
    if (std::exchange(written.continues_line, false)) file << '\n';
    if (begins) write_line(file, written.columns);
    std::vector<std::string> line{std::to_string(s.epoch)};
    for (std::size_t i = 1; i < written.columns.size(); ++i) {
      const auto value = s.values.find(written.columns[i]);
      line.push_back(value ? detail::exact_text(*value) : "NA");
    }
    write_line(file, line);
    file.close();
    if (!file) io::fail_on_file("write", path, errno);
  }

 private:
  /// A text that contains the separator or a quote is quoted, and its quotes are doubled.
  std::string csv_field(const std::string& text) const {
    if (text.find_first_of({options.separator, '"'}) == text.npos) return text;
    std::string out = "\"";
    for (const char c : text) out.append(c == '"' ? 2 : 1, c);
    return out + '"';
  }
  void write_line(std::ostream& out, const std::vector<std::string>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i) (i > 0 ? out << options.separator : out) << csv_field(values[i]);
    out << '\n';
  }
  std::vector<std::string> split(const std::string& line) const {
    std::vector<std::string> all(1);
    bool is_quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] == '"') {
        if (!is_quoted && i > 0 && line[i - 1] == '"') all.back() += '"';  // the second of two
        is_quoted = !is_quoted;
      } else if (line[i] == options.separator && !is_quoted) {
        all.emplace_back();
      } else {
        all.back() += line[i];
      }
    return all;
  }
  /// Empty if there is no file.
  std::string content_of_file() const {
    std::error_code unknown;
    return std::filesystem::exists(path, unknown) ? io::content_of(path) : std::string();
  }
  /// No columns if there is no file, or if it is empty.
  std::vector<std::string> columns_of(const std::string& content) const {
    if (content.empty()) return {};
    std::string line = content.substr(0, content.find('\n'));
    if (line.ends_with('\r')) line.pop_back();
    std::vector<std::string> columns = split(line);
    if (columns[0] != "epoch") throw_error({"csv_logger: ", path.string(), " does not begin with a column 'epoch'"});
    return columns;
  }
  /// Removes the lines of epochs that are trained again.
  void drop_lines_from(int epoch) const {
    const std::string content = content_of_file();
    std::string kept;
    // The last line may be cut off.
    for (std::size_t at = 0, end = 0; (end = content.find('\n', at)) != content.npos; at = end + 1) {
      int of_line = 0;
      const std::string line = content.substr(at, end - at);
      if (at == 0 || (detail::read_exact(split(line)[0], of_line) && of_line < epoch)) kept += line + '\n';
    }
    if (!content.empty()) io::write_file_atomically(path, kept);
  }
};
static_assert(core::callback<csv_logger>);

}  // namespace strata
