// A folder of PNG and JPEG files as samples: its sub-folders are the classes. Needs libpng (-lpng) and libjpeg-turbo (-ljpeg).
// needs: libpng libjpeg
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <ranges>
#include <set>
#include <strata/base/error.hpp>
#include <strata/base/hash.hpp>
#include <strata/base/random.hpp>
#include <strata/base/random_draws.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/checksum.hpp>
#include <strata/data/core/checksum_of_files.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/parallel.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/image/affine_transform.hpp>
#include <strata/data/image/image_file.hpp>
#include <strata/data/image/resize.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::data {

enum class subset { all, training, validation };

/// Names and defaults are those of Keras.
struct image_folder_options {
  std::vector<std::string> class_names = {};  // sub-folders in the order of their labels; none: all, sorted
  resize_method interpolation = resize_method::bilinear;
  bool crop_to_aspect_ratio = false, pad_to_aspect_ratio = false;
  double validation_split = 0;  // fraction of the files used for validation
  data::subset subset = data::subset::all;
  std::uint64_t seed = 0;     // chooses the files for validation
  bool follow_links = false;  // follow links to folders below the class folders
  data::parallel parallel{autotune};
  std::uint64_t max_pixels = default_max_pixels;  // a file with more pixels is an error
};

namespace detail {

namespace files = std::filesystem;

[[noreturn]] inline void fail_on_folder(const files::path& folder, const std::string& why) {
  throw_error(folder.string() + ": " + why);
}

inline bool is_image_name(const files::path& file) {
  const std::string name = strata::detail::lower_case(file.extension().string());
  return name == ".png" || name == ".jpg" || name == ".jpeg";
}

inline bool is_folder(const files::directory_entry& entry) {
  std::error_code unknown;
  return entry.is_directory(unknown);
}

/// Whether an image has another format, which Keras or a viewer reads.
inline bool is_other_image_name(const files::path& file) {
  constexpr const char* endings[] = {".bmp", ".gif", ".webp", ".tif", ".tiff", ".jfif", ".heic", ".avif", ".jp2", ".ppm", ".pgm"};
  return std::ranges::find(endings, strata::detail::lower_case(file.extension().string())) != std::end(endings);
}

/// Counts what a folder contains besides the files to read: for each kind the number, and the first by name.
class left_out_files {
 public:
  explicit left_out_files(const files::path& folder) : folder_(folder) {}

  void add(const char* kind, const std::string& path, bool is_harmless = false) {
    kind_of_file& all = kinds_[kind];
    if (all.count++ == 0 || path < all.first) all.first = path;
    all.is_harmless = is_harmless;
  }
  /// "2 image(s) other than .png, .jpg and .jpeg (rose/1.bmp); 1 link(s) to folders (rose/old)"; empty if nothing is left out.
  std::string text(bool with_harmless = true) const {
    std::string out;
    for (const auto& [kind, all] : kinds_) {
      if (all.is_harmless && !with_harmless) continue;
      const std::string example = strata::detail::visible(files::path(all.first).lexically_relative(folder_).string());
      out += strata::detail::text_of({out.empty() ? "" : "; ", all.count, ' ', kind, " (", example, ")"});
    }
    return out;
  }

 private:
  struct kind_of_file {
    std::size_t count = 0;
    std::string first;
    bool is_harmless = false;
  };
  files::path folder_;
  std::map<std::string, kind_of_file> kinds_;
};

/// The names of the sub-folders, sorted, so that they are the same on each machine.
inline std::vector<std::string> sub_folders(const files::path& folder, left_out_files& left_out) {
  std::vector<std::string> names;
  std::error_code code;
  for (files::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (is_folder(*at)) {
      if (name[0] != '.')
        names.push_back(name);
      else
        left_out.add("hidden folder(s)", at->path().string(), true);
    } else if (is_image_name(at->path())) {
      left_out.add("image(s) next to the folders of the classes", at->path().string());
    }
  }
  if (code) fail_on_folder(folder, code.message());
  std::ranges::sort(names);
  return names;
}

/// The images in a folder and in all folders below it, sorted by folder and name.
inline std::vector<std::string> images_below(const files::path& folder, bool follow_links, left_out_files& left_out) {
  std::vector<std::pair<std::string, std::string>> images;
  std::error_code code;
  const auto options = follow_links ? files::directory_options::follow_directory_symlink : files::directory_options::none;
  for (files::recursive_directory_iterator at(folder, options, code), end; !code && at != end; at.increment(code)) {
    std::error_code unknown;
    std::string name = at->path().filename().string();
    if (is_folder(*at)) {
      if (!follow_links && at->is_symlink(unknown)) left_out.add("link(s) to folders", at->path().string());
    } else if (!is_image_name(at->path())) {
      if (is_other_image_name(at->path()))
        left_out.add("image(s) other than .png, .jpg and .jpeg", at->path().string());
      else if (name[0] != '.')
        left_out.add("file(s) other than images", at->path().string(), true);
    } else if (name.starts_with("._")) {  // macOS keeps attributes of the file "x" in "._x", on disks of other systems
      left_out.add("file(s) of macOS next to images", at->path().string(), true);
    } else {
      images.emplace_back(at->path().parent_path().string(), std::move(name));
    }
  }
  if (code) fail_on_folder(folder, code.message());
  if (images.empty()) left_out.add("folder(s) without images", folder.string());
  std::ranges::sort(images);
  std::vector<std::string> paths;
  for (const auto& [parent, name] : images) paths.push_back(parent + '/' + name);
  return paths;
}

/// The indices, in order, of the files that belong to the subset, out of n. They depend on the seed only.
inline std::vector<std::size_t> members(const files::path& folder, std::size_t n, const image_folder_options& options) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const double split = options.validation_split;
  if (options.subset == subset::all) {
    if (split != 0) fail_on_folder(folder, "validation_split needs a subset, training or validation");
    return order;
  }
  if (!(split > 0 && split < 1))
    fail_on_folder(folder, strata::detail::formatted("validation_split %g is not between 0 and 1", split));
  strata::detail::random_draws(philox{options.seed}.fork(0x73706C6974), 0).shuffle(order);  // "split"
  const auto validation = static_cast<std::ptrdiff_t>(split * static_cast<double>(n));
  if (options.subset == subset::training)
    order.erase(order.end() - validation, order.end());
  else
    order.erase(order.begin(), order.end() - validation);
  if (order.empty())
    fail_on_folder(folder, strata::detail::text_of({"validation_split ", split, " of ", n, " files leaves none for ",
                                                    options.subset == subset::training ? "training" : "validation"}));
  std::ranges::sort(order);
  return order;
}

struct image_list {
  std::vector<std::string> paths;  // strings: files::path needs several times the memory, and there may be millions
  std::vector<std::int32_t> labels;
  std::vector<std::string> class_names;
  image_folder_options options;
  std::string left_out;  // as text
};

/// Makes each sub-folder a class.
inline void list_classes(const files::path& folder, image_list& list, left_out_files& left_out) {
  const std::vector<std::string> found = sub_folders(folder, left_out), &chosen = list.options.class_names;
  if (found.empty()) fail_on_folder(folder, "there are no sub-folders, which would be the classes");
  for (const std::string& name : chosen) {
    if (!std::ranges::binary_search(found, name))
      fail_on_folder(folder, "there is no sub-folder for the class " + strata::detail::shown(name));
    if (std::ranges::count(chosen, name) > 1)
      fail_on_folder(folder, "class_names has " + strata::detail::quoted(name) + " twice");
  }
  for (const std::string& name : found)
    if (!chosen.empty() && std::ranges::find(chosen, name) == chosen.end())
      left_out.add("folder(s) not in class_names", (folder / name).string());
  list.class_names = chosen.empty() ? found : chosen;
  for (std::size_t label = 0; label < list.class_names.size(); ++label) {
    const std::vector<std::string> images = images_below(folder / list.class_names[label], list.options.follow_links, left_out);
    list.paths.insert(list.paths.end(), images.begin(), images.end());
    list.labels.resize(list.paths.size(), static_cast<std::int32_t>(label));
  }
}

/// Prints to std::clog. A program opens the same folder several times, for training and for validation.
inline void print_once(std::string line) {
  static std::mutex one_at_a_time;
  static std::set<std::string> printed;
  const std::lock_guard guard(one_at_a_time);
  if (const auto [at, is_new] = printed.insert(std::move(line)); is_new) std::clog << *at;
}

/// The files to read. Labels are inferred from the folders unless Kind is none or the user passes labels.
template <label_kind Kind>
image_list list_images(const files::path& folder, image_folder_options options, const std::vector<std::int32_t>* labels) {
  const bool inferred = Kind == label_kind::sparse && !labels;
  if (options.crop_to_aspect_ratio && options.pad_to_aspect_ratio)
    fail_on_folder(folder, "only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be set");
  if (!inferred && !options.class_names.empty())
    fail_on_folder(folder, "class_names are for labels that are inferred from folders");
  std::error_code code;
  const files::file_status status = files::status(folder, code);
  if (status.type() == files::file_type::not_found) fail_on_folder(folder, "there is no such folder");
  if (code) fail_on_folder(folder, code.message());
  if (!files::is_directory(status)) fail_on_folder(folder, "not a folder");

  image_list all;
  all.options = std::move(options);
  left_out_files left_out(folder);
  if (inferred) {
    list_classes(folder, all, left_out);
  } else {
    all.paths = images_below(folder, all.options.follow_links, left_out);
    if (labels) all.labels = *labels;
  }
  if (all.paths.empty()) fail_on_folder(folder, "there are no .png, .jpg or .jpeg files");
  all.left_out = left_out.text();
  if (const std::string text = left_out.text(false); !text.empty())
    print_once(strata::detail::text_of(
        {strata::detail::visible(folder.string()), ": ", all.paths.size(), " images are read; skipped: ", text, "\n"}));
  if (labels && labels->size() != all.paths.size())
    fail_on_folder(folder, std::to_string(labels->size()) + " labels for " + std::to_string(all.paths.size()) + " files");

  const std::vector<std::size_t> chosen = members(folder, all.paths.size(), all.options);
  for (std::size_t k = 0; k < chosen.size(); ++k) {  // moves chosen files to the front: chosen[k] >= k
    std::swap(all.paths[k], all.paths[chosen[k]]);
    if (!all.labels.empty()) std::swap(all.labels[k], all.labels[chosen[k]]);
  }
  all.paths.resize(chosen.size());
  if (!all.labels.empty()) all.labels.resize(chosen.size());
  return all;
}

/// The rows of image_dataset_from_directory: a file is read and decoded when its sample is written.
template <shape S, class T, label_kind Labels>
class image_folder_rows {
 public:
  using value_type = T;
  static constexpr shape sample_shape = S, target_shape{};
  static constexpr label_kind labels = Labels;

  static constexpr row_properties properties{};

  explicit image_folder_rows(image_list list) : list_(std::make_shared<const image_list>(std::move(list))) {}

  std::size_t size() const { return list_->paths.size(); }

  template <class U, class Then>
  void write(sample_index i, sample_index, sample_place<U> to, Then then) const {
    static thread_local image file;
    constexpr int height = S[0], width = S[1], channels = S[2];
    read_image(path(i.row), channels, file, list_->options.max_pixels);
    const image_folder_options& options = list_->options;
    resize(
        pixels<const std::uint8_t, channels>{file.values.data(), file.height, file.width, std::ptrdiff_t{file.width} * channels},
        pixels<U, channels>{to.x, height, width, width * channels}, options.interpolation,
        options.crop_to_aspect_ratio  ? aspect_ratio::crop
        : options.pad_to_aspect_ratio ? aspect_ratio::pad
                                      : aspect_ratio::distort,
        [then](U v) { return then(static_cast<U>(number_of<T>(v))); });
    if constexpr (labels == label_kind::sparse) *to.label = label(i);
  }
  std::int32_t label(sample_index i) const
    requires(labels == label_kind::sparse)
  {
    return list_->labels[i.row];
  }
  std::string describe(sample_index i) const { return "sample " + std::to_string(i.row) + ", " + path(i.row); }
  int parallelism() const { return list_->options.parallel.threads(); }

  /// The checksum of the files' names, their labels and the sizes of some. Files are not read.
  std::uint64_t checksum() const {
    strata::detail::fnv1a sum;
    sum.add(checksum_of_files(list_->paths, true));
    for (const std::int32_t label : list_->labels) sum.add(std::uint64_t(static_cast<std::uint32_t>(label)));
    return sum.value();
  }

  const std::string& path(std::size_t row) const { return list_->paths[row]; }
  const std::vector<std::string>& file_paths() const { return list_->paths; }
  const std::vector<std::string>& class_names() const { return list_->class_names; }
  const image_folder_options& options() const { return list_->options; }
  const std::string& left_out() const { return list_->left_out; }

 private:
  std::shared_ptr<const image_list> list_;
};

}  // namespace detail

/// The files of a folder in the order of their names. Random access and sized. Copies share the list.
template <shape S, class T, label_kind Labels>
class image_folder : public indexed_view<detail::image_folder_rows<S, T, Labels>> {
  using rows_type = detail::image_folder_rows<S, T, Labels>;

 public:
  explicit image_folder(detail::image_list list)
      : indexed_view<rows_type>("image_dataset_from_directory", rows_type(std::move(list))) {}

  const std::vector<std::string>& file_paths() const { return this->rows().file_paths(); }
  /// Describes what the folder contains besides the files to read: counts, and an example of each kind.
  const std::string& left_out() const { return this->rows().left_out(); }
  std::string order() const {
    const image_folder_options& options = this->rows().options();
    constexpr const char* methods[] = {"bilinear", "nearest", "bicubic", "area"};
    std::string text = strata::detail::text_of(
        {"image_dataset_from_directory(", this->size(), " files, ", detail::text_of_checksum(this->rows().checksum()), ", ",
         methods[static_cast<int>(options.interpolation)], options.crop_to_aspect_ratio ? ", cropped" : "",
         options.pad_to_aspect_ratio ? ", padded" : ""});
    if (options.subset != subset::all)
      text += strata::detail::text_of({" of ", options.subset == subset::training ? "training" : "validation", ", split ",
                                       options.validation_split, ", seed ", options.seed});
    return text + ")";
  }
  /// Class names by label; empty unless labels are inferred.
  const std::vector<std::string>& class_names() const { return this->rows().class_names(); }
};

namespace detail {
template <shape S, class T, label_kind Labels>
auto open_images(const files::path& folder, image_folder_options options, const std::vector<std::int32_t>* labels) {
  constexpr bool fits = S.rank() == 3 && (S[2] == 1 || S[2] == 3 || S[2] == 4);
  static_assert(fits, "image_dataset_from_directory<shape{height, width, channels}>: channels are 1 (grey), 3 (RGB) or 4 (RGBA)");
  if constexpr (fits) return image_folder<S, T, Labels>(list_images<Labels>(folder, std::move(options), labels));
}
}  // namespace detail

/// `image_dataset_from_directory<shape{224, 224, 3}>("flowers", {.validation_split = 0.2, .subset = subset::training})`: the
/// .png, .jpg and .jpeg files in the sub-folders of a folder, and below. A label is the index of the sub-folder among all, sorted
/// by name, or in `class_names`. (Keras reads .bmp and .gif, too.)
///
/// out: a view of sample indices, sorted by folder and file name, random access and sized, for `shuffle` and `batch`; a shuffle
/// reads no files. A file is read and decoded when its sample is written into a batch, on `parallel` threads. x: (height, width,
/// channels), 0 to 255, resized to height and width; 1 channel is grey, 3 are RGB, 4 RGBA. T is the type in which x is kept, for
/// example by cache: float as in Keras, since resizing makes fractions; std::uint8_t takes a quarter of the memory and rounds.
///
/// Options: class_names, interpolation (bilinear), crop_to_aspect_ratio, pad_to_aspect_ratio, validation_split and subset
/// (files for validation are drawn from all files, by seed; each subset stays sorted), seed, follow_links, parallel (autotune),
/// max_pixels.
///
/// left_out() counts what is left out: images of other formats or beside the sub-folders, sub-folders without images or not in
/// class_names, links to folders that are not followed; and harmless files: other files, those that macOS adds to images
/// (._x.jpg), hidden sub-folders. A line on std::clog, once for each folder, names what is not harmless.
///
/// Throws strata_error, with the folder or file, if there is no such folder, no image in it, no sub-folder for one of
/// class_names, one of class_names twice, or no file in the subset; and, when a file is read, if it is not an image or is
/// damaged, see decode_image. A sub-folder without images is a class without samples.
/// https://keras.io/api/data_loading/image/#imagedatasetfromdirectory-function
template <shape S, class T = float>
auto image_dataset_from_directory(const std::filesystem::path& folder, image_folder_options options = {}) {
  return detail::open_images<S, T, label_kind::sparse>(folder, std::move(options), nullptr);
}

/// The overload with labels from a range, one for each file in the order of folders and names; sub-folders are not classes then.
/// Throws strata_error also if there are more or fewer labels than files.
template <shape S, class T = float, std::ranges::input_range Labels>
  requires std::integral<std::ranges::range_value_t<Labels>>
auto image_dataset_from_directory(const std::filesystem::path& folder, Labels&& labels, image_folder_options options = {}) {
  std::vector<std::int32_t> numbers;
  for (const auto label : labels) numbers.push_back(detail::label_number(label));
  return detail::open_images<S, T, label_kind::sparse>(folder, std::move(options), &numbers);
}

/// The overload without labels.
template <shape S, class T = float>
auto image_dataset_from_directory(const std::filesystem::path& folder, no_labels, image_folder_options options = {}) {
  return detail::open_images<S, T, label_kind::none>(folder, std::move(options), nullptr);
}

}  // namespace strata::data

template <strata::shape S, class T, strata::label_kind Labels>
inline constexpr bool std::ranges::enable_borrowed_range<strata::data::image_folder<S, T, Labels>> = true;
