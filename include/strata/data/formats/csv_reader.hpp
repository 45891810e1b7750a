// Reads the records of a raw or gzipped CSV file (RFC 4180) from first to last. Needs zlib (-lz).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/io/unzipped_file.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::data {

/// Limits beyond which a file is refused.
struct csv_limits {
  std::size_t max_columns = std::size_t{1} << 16;
  std::size_t max_record_bytes = std::size_t{64} << 20;  // of a line, or of several with a quoted text across them
  std::uint64_t max_compression_ratio = io::default_max_compression_ratio;  // bytes of text for each byte of a gzipped file
};

/// Splits a file into records, and those into fields. Lines end with LF, CRLF or CR; a field in double quotes may hold
/// separators, line ends and doubled quotes; quotes inside an unquoted field are text, as in most programs; empty lines and a
/// UTF-8 byte order mark at the beginning are skipped. Holds one record and a megabyte in memory. Throws strata_error
/// naming file and line if the file cannot be read, is UTF-16 or an archive, or exceeds the limits, or if the closing quote of a
/// field is missing or followed by other text.
class csv_reader {
 public:
  explicit csv_reader(std::filesystem::path path, char separator = ',', csv_limits limits = {})
      : path_(std::move(path)),
        separator_(separator),
        limits_(limits),
        file_(path_, limits.max_compression_ratio),
        buffer_(std::size_t{1} << 20) {
    if (separator == '"' || separator == '\n' || separator == '\r')
      throw_error(path_.string() + ": the separator of a CSV file can be neither a quote nor the end of a line");
    fill();
    const std::string_view text(buffer_.data(), end_);
    const auto is_zero = [&](std::size_t i) { return i < text.size() && text[i] == '\0'; };
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") || (is_zero(0) && is_zero(2)) || (is_zero(1) && is_zero(3)))
      throw_error({path_.string(), ": the file is UTF-16: save it as UTF-8"});
    if (text.starts_with("PK\3\4") || text.starts_with("\xD0\xCF\x11\xE0"))
      throw_error({path_.string(), ": the file is a zip archive or a spreadsheet: save the table as CSV, in UTF-8"});
    if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  /// Reads the next record. False at the end of the file.
  bool next() {
    do {
      line_ += lines_;
      while (!split()) fill();
    } while (fields_.size() == 1 && fields_[0].size == 0 && !fields_[0].quoted);
    for (field& f : fields_)
      if (f.doubled) undouble(f);
    return !fields_.empty();
  }

  // Fields of the record, valid until next().

  std::size_t size() const { return fields_.size(); }
  std::string_view operator[](std::size_t i) const { return {buffer_.data() + fields_[i].begin, fields_[i].size}; }
  /// The line in which the record begins, from 1.
  std::size_t line() const { return line_; }
  const std::filesystem::path& path() const { return path_; }

  [[noreturn]] void fail(const std::string& what) const { fail(line_, what); }

 private:
  struct field {
    std::size_t begin, size;
    bool quoted, doubled;  // doubled: contains quotes that are written twice
  };

  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw_error(path_.string() + ": line " + std::to_string(line) + ": " + what);
  }
  [[noreturn]] void fail_on_long_record() const {
    fail("a record of more than " + std::to_string(limits_.max_record_bytes) +
         " bytes, which max_record_bytes forbids: a quote that is never closed?");
  }
  std::size_t lines_before(std::size_t end) const {
    return static_cast<std::size_t>(std::count(buffer_.data() + at_, buffer_.data() + end, '\n'));
  }

  /// Reads more of the file after the remaining bytes of the buffer.
  void fill() {
    std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
    end_ -= at_;
    at_ = 0;
    if (end_ == buffer_.size()) {
      if (end_ >= limits_.max_record_bytes) fail_on_long_record();
      buffer_.resize(2 * end_);
    }
    const std::size_t got = file_.read_some(buffer_.data() + end_, buffer_.size() - end_);
    end_ += got;
    complete_ = end_ < buffer_.size();
  }

  /// Splits one record; no fields result at the end of the file. False if the record continues after the buffer.
  bool split() {
    fields_.clear();
    lines_ = 0;
    if (at_ == end_) return complete_;
    const char* const first = buffer_.data();
    const char* const end = first + end_;
    const char* at = first + at_;
    for (;; ++at) {
      if (at != end && *at == '"') {
        const char* const begin = ++at;
        bool doubled = false;
        for (;; ++at, doubled = true) {  // to the closing quote
          const void* quote = at == end ? nullptr : std::memchr(at, '"', static_cast<std::size_t>(end - at));
          if (quote == nullptr || static_cast<const char*>(quote) + 1 == end) {
            if (!complete_) return false;
            if (quote == nullptr)
              fail(line_ + lines_before(static_cast<std::size_t>(begin - first)),
                   "column " + std::to_string(fields_.size() + 1) + ": the quote is never closed");
          }
          at = static_cast<const char*>(quote) + 1;
          if (at == end || *at != '"') break;
        }
        add({static_cast<std::size_t>(begin - first), static_cast<std::size_t>(at - 1 - begin), true, doubled});
      } else {
        const char* const begin = at;
        while (at != end && *at != separator_ && *at != '\n' && *at != '\r') ++at;
        add({static_cast<std::size_t>(begin - first), static_cast<std::size_t>(at - begin), false, false});
      }
      if (at == end && !complete_) return false;
      if (at != end && *at == separator_) continue;
      if (at != end && *at == '\r') {
        if (at + 1 == end && !complete_) return false;
        if (at + 1 != end && at[1] == '\n') ++at;
      }
      if (at != end && *at != '\n' && *at != '\r')
        fail(line_ + lines_before(static_cast<std::size_t>(at - first)),
             "column " + std::to_string(fields_.size()) + ": after the closing quote comes " + strata::detail::quoted({at, 1}) +
                 ", expected a separator or the end of the line");
      if (at != end) ++at;
      const std::size_t next = static_cast<std::size_t>(at - first);
      if (next - at_ > limits_.max_record_bytes) fail_on_long_record();
      lines_ = lines_before(next) + (first[next - 1] == '\r');
      at_ = next;
      return true;
    }
  }

  void add(field f) {
    if (fields_.size() == limits_.max_columns)
      fail("more than " + std::to_string(limits_.max_columns) + " columns, which max_columns forbids");
    fields_.push_back(f);
  }

  void undouble(field& f) {
    char* const begin = buffer_.data() + f.begin;
    char* to = begin;
    for (const char *from = begin, *end = begin + f.size; from != end; ++from) {
      *to++ = *from;
      if (*from == '"') ++from;  // the second of two quotes
    }
    f.size = static_cast<std::size_t>(to - begin);
  }

  std::filesystem::path path_;
  char separator_;
  csv_limits limits_;
  io::unzipped_file file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;      // the part of the buffer that has not been split
  bool complete_ = false;             // the buffer reaches the end of the file
  std::size_t line_ = 1, lines_ = 0;  // of the record: its first line, and its number of lines
  std::vector<field> fields_;
};

}  // namespace strata::data
