// Stores samples after they have been made once, in memory or in a file.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <strata/base/aligned_memory.hpp>
#include <strata/base/all_finite.hpp>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/core/checksum.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/left_out.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/views/batch_cache.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/crc32c.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/os.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::data {

/// How data::cache opens a file that exists already.
struct cache_options {
  bool check_crc = true;      // reads the file once when it is opened; if false, only its length is checked
  bool check_samples = true;  // makes some samples again when the file is opened, and compares them
};

namespace detail {
/// The layout of a stored sample: x and target in a type that can represent both, and a label. Each begins at a multiple of its
/// alignment if the sample does, and samples lie one after another.
template <class Base>
struct kept_sample {
  using value_type = shown_value_t<Base>;
  static constexpr std::size_t x_size{Base::sample_shape.size()}, target_size{Base::target_shape.size()};
  static constexpr bool sparse = Base::labels == label_kind::sparse;
  static constexpr std::size_t rounded_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }
  static constexpr std::size_t label_at = rounded_up((x_size + target_size) * sizeof(value_type), alignof(std::int32_t));
  static constexpr std::size_t bytes =
      rounded_up(label_at + (sparse ? sizeof(std::int32_t) : 0), std::max<std::size_t>(8, alignof(value_type)));

  static sample_place<value_type> place(std::byte* at) {
    auto* const x = reinterpret_cast<value_type*>(at);
    return {x, reinterpret_cast<std::int32_t*>(at + label_at), x + x_size};
  }
};
template <named_source Base>
struct kept_sample<Base> : named_layout<typename Base::named> {};

/// Compares with a tolerance: floating-point values differ in their last bits between compilers, options and processors.
template <class U>
bool nearly_same(const U* a, const U* b, std::size_t count) {
  if (std::memcmp(a, b, count * sizeof(U)) == 0) return true;
  if constexpr (std::floating_point<U>) {
    const auto size_of = [](U v) { return v < 0 ? -v : v; };
    const auto near = [&](U v, U w) {
      if (!strata::detail::is_finite(v) || !strata::detail::is_finite(w))  // nan is neither positive nor negative
        return !strata::detail::is_finite(v) && !strata::detail::is_finite(w) && (v > 0) == (w > 0) && (v < 0) == (w < 0);
      return size_of(v - w) <= U(1e-4) * std::max(size_of(v), size_of(w)) + U(1e-6);
    };
    return std::equal(a, a + count, b, near);
  }
  return false;
}
/// "float32", "uint8".
template <class U>
std::string name_of_number() {
  constexpr const char* kind = std::floating_point<U> ? "float" : std::signed_integral<U> ? "int" : "uint";
  return strata::detail::text_of({kind, 8 * sizeof(U)});
}

/// Whether a device can read samples that are stored as kept_sample.
template <class Base>
concept keeps_numbers = row_source<Base> && storable_number<shown_value_t<Base>>;
template <class Base>
concept keeps_labels = row_source<Base> && Base::labels == label_kind::sparse;

/// Base of rows that store samples as kept_sample.
template <class Base>
class kept_rows {
  using kept = kept_sample<Base>;

 public:
  using value_type = typename kept::value_type;
  static constexpr shape sample_shape = Base::sample_shape, target_shape = Base::target_shape;
  static constexpr label_kind labels = Base::labels;

 protected:
  static stored_samples stored_at(const std::byte* first, std::size_t count)
    requires storable_number<value_type>
  {
    stored_samples all{.count = count, .blocks = {{first, count * kept::bytes}}, .block_count = 1, .truths = labels};
    all.x.stride = kept::bytes, all.x.type = number_type_of<value_type>;
    all.truth = all.x;
    all.truth.offset = labels == label_kind::sparse ? kept::label_at : kept::x_size * sizeof(value_type);
    if constexpr (labels == label_kind::sparse) all.truth.type = number_type::i32;
    static_assert(kept::label_at % alignof(std::int32_t) == 0 && kept::bytes % alignof(std::int32_t) == 0 &&
                  kept::bytes % alignof(value_type) == 0);  // a device needs aligned elements
    return all;
  }
  static const value_type* x(const std::byte* at) { return reinterpret_cast<const value_type*>(at); }
  static std::int32_t label_at(const std::byte* at) {
    std::int32_t label;
    std::memcpy(&label, at + kept::label_at, sizeof label);
    return label;
  }
  static bool same(const std::byte* a, const std::byte* b) {
    if (labels == label_kind::sparse && label_at(a) != label_at(b)) return false;
    return nearly_same(x(a), x(b), kept::x_size + kept::target_size);
  }
  /// What a sample is, for the header of a file.
  static std::string form() {
    return strata::detail::text_of(
        {name_of_number<value_type>(), " ", strata::detail::shape_text(sample_shape), kept::sparse ? " with labels" : "",
         labels == label_kind::dense ? " with targets " + strata::detail::shape_text(target_shape) : ""});
  }
  template <class T, class Then>
  static void copy(const std::byte* at, sample_place<T> to, Then then) {
    const value_type* from = x(at);
    for (std::size_t k = 0; k < kept::x_size; ++k) to.x[k] = then(static_cast<T>(from[k]));
    if constexpr (labels == label_kind::sparse) *to.label = label_at(at);
    if constexpr (labels == label_kind::dense)
      for (std::size_t k = 0; k < kept::target_size; ++k) to.target[k] = static_cast<T>(from[kept::x_size + k]);
  }
};
template <named_source Base>
class kept_rows<Base> : public named_form<typename Base::named> {
  using kept = kept_sample<Base>;

 protected:
  static bool same(const std::byte* a, const std::byte* b) {
    bool all = true;
    kept::each([&]<class U>(std::type_identity<U>, std::size_t at, shape extents, std::string_view) {
      all = all && nearly_same(reinterpret_cast<const U*>(a + at), reinterpret_cast<const U*>(b + at),
                               static_cast<std::size_t>(extents.size()));
    });
    return all;
  }
  static std::string form() {
    std::string text;
    kept::each([&]<class U>(std::type_identity<U>, std::size_t, shape extents, std::string_view name) {
      text += strata::detail::text_of({text.empty() ? "" : ", ", name, " "});
      text += extents.rank() == 0 ? "label" : name_of_number<U>() + " " + strata::detail::shape_text(extents);
    });
    return text;
  }
  template <class Place>
  static void copy(const std::byte* at, const Place& to, std::identity) {
    kept::copy(at, to);
  }
};

/// Samples of a known number of rows: each is stored when it is read for the first time.
template <class Base>
class remembered_rows : public kept_rows<Base>, public rows_around<Base> {
  using kept = kept_sample<Base>;
  using rows = kept_rows<Base>;

 public:
  explicit remembered_rows(Base base)
      : rows_around<Base>(std::move(base)), memory_(std::make_shared<memory>(this->base_.size())) {}

  template <class Place, class Then>
  void write(sample_index i, sample_index ahead, const Place& to, Then then) const {
    std::atomic<state>& known = memory_->states[i.row];
    std::byte* const at = memory_->bytes.get() + i.row * kept::bytes;
    state now = known.load(std::memory_order_acquire);
    if (now == state::unknown && known.compare_exchange_strong(now, state::being_written, std::memory_order_acquire)) {
      STRATA_TRY { this->base_.write(i, i, kept::place(at), std::identity{}); }
      STRATA_CATCH_ALL {
        known.store(state::unknown, std::memory_order_release);
        STRATA_THROW_AGAIN;
      }
      known.store(now = state::known, std::memory_order_release);
    }
    if (now == state::known) {
      __builtin_prefetch(memory_->bytes.get() + ahead.row * kept::bytes);
      rows::copy(at, to, then);
    } else {  // another thread is writing it
      this->base_.write(i, ahead, to, then);
    }
  }
  std::int32_t label(sample_index i) const
    requires has_label<Base>
  {
    return this->base_.label(i);
  }
  /// The stored samples, once all rows have been read.
  std::optional<stored_samples> stored() const
    requires keeps_numbers<Base>
  {
    for (const auto& each : memory_->states)
      if (each.load(std::memory_order_acquire) != state::known) return {};
    stored_samples all = rows::stored_at(memory_->bytes.get(), memory_->states.size());
    for (std::uint32_t row = 0; row < all.count && all.rows_are_ordinals; ++row)
      all.rows_are_ordinals = this->ordinal({row}) == row;
    return all;
  }

 private:
  enum class state : std::uint8_t { unknown, being_written, known };
  struct memory {
    explicit memory(std::size_t n) : bytes(strata::detail::allocate_shared_aligned<std::byte>(n * kept::bytes)), states(n) {}
    std::shared_ptr<std::byte> bytes;
    std::vector<std::atomic<state>> states;
  };
  std::shared_ptr<memory> memory_;
};

/// Samples in a file that save() has written.
template <class Base>
class cached_file_rows : public kept_rows<Base> {
  using kept = kept_sample<Base>;
  using rows = kept_rows<Base>;

 public:
  static constexpr row_properties properties{};

  /// Throws strata_error, naming the file, if it cannot be read, holds other samples, or is damaged.
  cached_file_rows(const std::filesystem::path& path, const std::string& order, cache_options options)
      : file_(std::make_shared<const io::mapped_file>(path)) {
    const auto bytes = file_->bytes();
    const std::string expected = header(order);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string_view found = text.substr(0, text.find('\n'));
    if (found.starts_with(any_format) && !found.starts_with(format))
      throw_error({"cache: ", path.string(), " has another format, '", found.substr(0, found.find(':')),
                   "': remove the file, and it is written again"});
    if (std::string(found) + '\n' != expected)
      throw_error({"cache: ", path.string(), " holds '", found.substr(0, 1000), "', but the data set is '",
                   expected.substr(0, expected.size() - 1), "': remove the file, or give each data set its own"});
    const auto damaged = [&](std::initializer_list<strata::detail::text_piece> what) {
      throw_error({"cache: ", path.string(), " is damaged: ", strata::detail::text_of(what),
                   "; remove the file, and it is written again"});
    };
    first_ = aligned(expected.size()) + sizeof(contents);
    if (bytes.size() < first_) damaged({"it ends within its header"});
    contents said;
    std::memcpy(&said, bytes.data() + first_ - sizeof said, sizeof said);
    if (said.own_checksum != checksum_of(said)) damaged({"the checksum of its header is wrong"});
    size_ = std::size_t(said.samples);
    checksum_ = said.checksum;
    const std::size_t left = bytes.size() - first_;
    if (left / kept::bytes != size_ || left % kept::bytes != 0)
      damaged({"its header has ", size_, " samples of ", kept::bytes, " bytes, but ", left, " bytes follow"});
    if (!options.check_crc) return;
    file_->expect(io::os::mapped_use::in_order);
    running_checksum sum;
    for (std::size_t at = 0; at < size_; at += chunk)
      sum.add(bytes.subspan(first_ + at * kept::bytes, std::min(chunk, size_ - at) * kept::bytes));
    file_->expect(io::os::mapped_use::usual);
    if (sum.value != said.checksum) damaged({"the checksum of its samples is wrong"});
  }

  std::size_t size() const { return size_; }
  std::uint64_t checksum() const { return checksum_; }
  template <class Place, class Then>
  void write(sample_index i, sample_index ahead, const Place& to, Then then) const {
    __builtin_prefetch(at(ahead));
    rows::copy(at(i), to, then);
  }
  std::int32_t label(sample_index i) const
    requires keeps_labels<Base>
  {
    return rows::label_at(at(i));
  }
  auto direct(sample_index i) const
    requires row_source<Base>
  {
    return rows::x(at(i));
  }
  std::optional<stored_samples> stored() const
    requires keeps_numbers<Base>
  {
    return rows::stored_at(at({}), size_);
  }

  /// Makes some samples again, as functions before the cache cannot be compared: the first, the last and some between if the view
  /// has random access, else the first few. Throws strata_error if the file has others, or another number of them.
  template <class V>
  void refuse_other_samples(V& view, const std::filesystem::path& path) const {
    arena<std::byte> made(kept::bytes);
    const auto place = kept::place(made.data());
    const auto refuse = [&](std::initializer_list<strata::detail::text_piece> what) {
      throw_error({"cache: ", path.string(), " holds other samples than the data set has now: ", strata::detail::text_of(what),
                   ", because of other data or a function that returns other numbers: remove the file, and it is written again, "
                   "give each data set its own, or set .check_samples = false"});
    };
    const auto check = [&](std::size_t n, sample_index i) {
      const bool is_made = detail::unless_left_out([&] { view.rows().write(i, i, place, std::identity{}); });
      detail::release(view.rows(), i);
      if (is_made && !(n < size_ && rows::same(made.data(), at({static_cast<std::uint32_t>(n)}))))
        refuse({"sample ", n, " differs"});
      return is_made;
    };
    constexpr std::size_t few = 8;
    start(view);
    if constexpr (addressable<V> && !row_properties(rows_t<V>::properties).leaves_out) {
      each_of_some(view.size(), few, [&](std::size_t k) { check(k, index_at(view, k, 0)); });
    } else {
      std::size_t n = 0;
      for (const sample_index i : view)
        if (check(n, i) && ++n == few) return;
      if (n != size_) refuse({"the data set ends after ", n, " samples, but the file has ", size_});
    }
  }

  /// Writes all samples of a view in their order. The file is complete or absent.
  template <class V>
  static void save(V& view, const std::filesystem::path& path, const std::string& order) {
    io::atomic_file file(path);
    std::string head = header(order);
    head.resize(aligned(head.size()), '\n');
    file.write(head);
    contents all;
    file.write(std::as_bytes(std::span(&all, 1)));  // reserves its place; it is overwritten at the end
    arena<std::byte> some(chunk * kept::bytes);
    running_checksum sum;
    std::size_t filled = 0;
    const auto flush = [&] {
      const std::span<const std::byte> bytes(some.data(), std::exchange(filled, 0) * kept::bytes);
      all.samples += bytes.size() / kept::bytes;
      if (!bytes.empty()) sum.add(bytes);
      file.write(bytes);
    };
    start(view);
    for (const sample_index i : view) {
      const auto place = kept::place(some.data() + filled * kept::bytes);
      if (detail::unless_left_out([&] { view.rows().write(i, i, place, std::identity{}); })) ++filled;
      detail::release(view.rows(), i);
      if (filled == chunk) flush();
    }
    flush();
    all.checksum = sum.value;
    all.own_checksum = checksum_of(all);
    file.write_at(head.size(), std::as_bytes(std::span(&all, 1)));
    file.commit();
  }

 private:
  /// Starts at epoch 0, even if a copy of the view has been read.
  template <class V>
  static void start(V& view) {
    detail::release_all(view.rows());
    view.set_epoch(0);
  }
  /// The header after its first line.
  struct contents {
    std::uint64_t samples = 0;
    std::uint32_t checksum = 0, own_checksum = 0;
    std::array<std::byte, 48> unused{};  // samples begin on a cache line
  };
  static std::uint32_t checksum_of(const contents& c) {
    return io::crc32c(std::as_bytes(std::span(&c, 1)).first(offsetof(contents, own_checksum)));
  }
  static constexpr std::string_view any_format = "strata cache ", format = "strata cache 4: ";
  static constexpr std::size_t chunk = (std::size_t{1} << 20) / kept::bytes + 1;  // samples per checksum
  /// The checksum of the checksums of all chunks so far.
  struct running_checksum {
    std::uint32_t value = 0;
    void add(std::span<const std::byte> bytes) {
      const std::uint32_t both[] = {value, io::crc32c(bytes)};
      value = io::crc32c(std::as_bytes(std::span(both)));
    }
  };
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  static std::string header(const std::string& order) {
    return strata::detail::text_of({format, rows::form(), " of ", order, "\n"});
  }
  const std::byte* at(sample_index i) const { return file_->bytes().data() + first_ + i.row * kept::bytes; }

  std::shared_ptr<const io::mapped_file> file_;
  std::size_t first_ = 0, size_ = 0;
  std::uint32_t checksum_ = 0;
};

/// The stored elements of a stream.
template <class E>
class remembered_elements : public elements_of<remembered_elements<E>, E> {
 public:
  static constexpr row_properties properties{};

  struct memory {
    std::deque<E> elements;
    bool complete = false;
  };

  const E& get(sample_index i) const { return memory_->elements[i.row]; }
  memory& kept() const { return *memory_; }

 private:
  std::shared_ptr<memory> memory_ = std::make_shared<memory>();
};
}  // namespace detail

/// The elements of a stream: read in the first epoch, and taken from memory afterwards. An epoch that is left early is discarded.
/// A copy made before the first epoch ends, such as that of prefetch, reads the stream itself.
template <element_view V>
class cached_stream_view : public detail::single_pass<cached_stream_view<V>> {
  friend detail::single_pass<cached_stream_view>;
  using E = detail::stored_t<detail::element_t<rows_t<V>>>;

 public:
  static constexpr view_properties properties{};

  explicit cached_stream_view(V base) : base_(std::move(base)) {}
  cached_stream_view(cached_stream_view&&) = default;
  cached_stream_view& operator=(cached_stream_view&&) = default;
  cached_stream_view(const cached_stream_view& other) : base_(other.base_), epoch_(other.epoch_) {
    if (other.rows_.kept().complete) rows_ = other.rows_;
  }
  cached_stream_view& operator=(const cached_stream_view& other) { return *this = cached_stream_view(other); }

  const detail::remembered_elements<E>& rows() const { return rows_; }
  void set_epoch(int epoch) { epoch_ = epoch; }
  const V& base() const { return base_; }
  V& base() { return base_; }

 private:
  struct state : detail::position<V> {
    sample_index current;
    bool reading = false;
  };

  void start() {
    auto& kept = rows_.kept();
    state_.current = {0, static_cast<std::uint32_t>(epoch_)};
    state_.reading = !kept.complete;
    if (state_.reading) {
      kept.elements.clear();
      detail::release_all(base_.rows());
      base_.set_epoch(epoch_);
      state_.start(base_);
      read_one();
    }
    ++epoch_;
  }
  sample_index read() const { return state_.current; }
  void next() {
    ++state_.current.row;
    if (!state_.reading) return;
    ++*state_.at;
    read_one();
  }
  bool done() const { return state_.current.row >= rows_.kept().elements.size(); }

  void read_one() {
    auto& kept = rows_.kept();
    for (bool has_read = false; !has_read;) {
      if (state_.done(base_)) {
        kept.complete = true;
        state_.reading = false;
        return;
      }
      const sample_index i = **state_.at;
      has_read = detail::unless_left_out([&] {
        detail::visit(base_.rows(), i, [&](const detail::element_t<rows_t<V>>& e) { kept.elements.push_back(detail::store(e)); });
      });
      detail::release(base_.rows(), i);
      if (!has_read) ++*state_.at;
    }
  }

  V base_;
  detail::remembered_elements<E> rows_;
  int epoch_ = 0;
  detail::own_state<state> state_;
};

namespace detail {
struct cache_fn {
  template <std::ranges::range V>
  auto operator()(V view) const {
    if constexpr (!fits<V>()) {
      return;
    } else if constexpr (batches<V>) {
      return batch_cache_view<V>(std::move(view));
    } else {
      constexpr bool keeps_rows = (sample_view<V> || named_view<V>) && sized<rows_t<V>>,
                     keeps_weights = keeps_rows || has_no_weights<V>;
      static_assert(keeps_weights, "data::cache of a stream would lose the weights: put data::sample_weight after it");
      if constexpr (keeps_rows)
        return with_rows<remembered_rows<rows_t<V>>>(std::move(view));
      else if constexpr (keeps_weights)
        return cached_stream_view<V>(std::move(view));
    }
  }
  template <std::ranges::range V>
  auto operator()(V view, const std::filesystem::path& path, cache_options options = {}) const {
    if constexpr (fits<V>()) {
      constexpr bool right_view = is_sample_view<V> || has_names<V>;
      static_assert(right_view,
                    "a cache file holds samples: put data::cache(path) before batch, and after a data::map that makes them");
      constexpr bool keeps_weights = has_no_weights<V>;
      static_assert(keeps_weights, "a cache file holds no weights: put data::sample_weight after data::cache(path)");
      if constexpr (right_view && keeps_weights) {
        using rows = cached_file_rows<rows_t<V>>;
        const std::string order = order_of(view);
        const bool is_there = std::filesystem::exists(path);
        if (!is_there) rows::save(view, path, order);
        const rows kept(path, order, options);
        if (is_there && options.check_samples) kept.refuse_other_samples(view, path);
        return indexed_view("cache", kept);
      }
    }
  }
  auto operator()(std::filesystem::path path, cache_options options = {}) const {
    return detail::partial(*this, std::move(path), options);
  }

 private:
  template <class V>
  static constexpr bool fits() {
    constexpr bool right_view = is_element_view<V> || is_batches<V>, draws = is_random<V>();
    static_assert(right_view, "data::cache takes a view of samples, elements or batches");
    static_assert(!draws,
                  "data::cache after a random stage would keep the random numbers of the first epoch: "
                  "put it before the random stage");
    return right_view && !draws;
  }
};
}  // namespace detail

/// `cache`, `cache("train.cache")`: the stages before it make each sample once.
/// In memory: a sample is stored when it is read for the first time; each epoch still has its own order. The elements of a stream
/// are stored in their order, once an epoch has read all of them.
/// After batch, in memory only: the batches of the first epoch, as they are, in every epoch. See docs/data.md.
/// In a file: all samples are written at once, unless the file exists. It is complete or absent, holds the samples in their
/// current order (put shuffle after it) in the number format of this machine, and is mapped, so it may be larger than the memory.
/// It contains the number of samples and a checksum, which is compared when it is opened:
/// `cache("train.cache", {.check_crc = false})` saves that pass over a very long file. Some samples are also made again and
/// compared, unless `.check_samples = false`, floating-point values within 1e-4 of their size. Workers that read different
/// samples need a file each. Throws strata_error if the file cannot be written, is damaged or was made from another data
/// set. https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache
inline constexpr closure<detail::cache_fn> cache{};

}  // namespace strata::data
