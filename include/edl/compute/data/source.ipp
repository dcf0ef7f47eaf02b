// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/json_lines.hpp"
#include "edl/compute/data/format/parquet.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/format/text_file.hpp"
#include "edl/compute/data/format/token_file.hpp"
#include "edl/compute/data/format/web_dataset.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/data/synthetic.hpp"
#include "edl/compute/data/synthetic_clicks.hpp"
#include "edl/compute/data/text.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::data {
namespace detail {

/// The published files in a directory, for training and for testing.
struct published_set {
  std::string images[2], labels[2];     // MNIST
  std::vector<std::string> batches[2];  // CIFAR-10

  bool has(int part) const {
    return !images[part].empty() || !labels[part].empty() || !batches[part].empty();
  }
};

EDL_INLINE published_set find_published(std::string const& directory, std::vector<std::string> const& names) {
  published_set found;
  for (auto const& name : names) {
    std::string_view plain = name;
    if (plain.ends_with(".gz")) plain.remove_suffix(3);
    auto const path = directory + "/" + name;
    for (int part = 0; part < 2; ++part) {
      std::string const prefix = part == 0 ? "train" : "t10k";
      // Some mirrors use the second form of the name.
      if (plain == prefix + "-images-idx3-ubyte" || plain == prefix + "-images.idx3-ubyte")
        found.images[part] = path;
      if (plain == prefix + "-labels-idx1-ubyte" || plain == prefix + "-labels.idx1-ubyte")
        found.labels[part] = path;
    }
    if (plain.starts_with("data_batch_") && plain.ends_with(".bin")) found.batches[0].push_back(path);
    if (plain == "test_batch.bin") found.batches[1].push_back(path);
  }
  return found;
}

EDL_INLINE std::unique_ptr<source> open_published(std::string const& directory, published_set const& found,
                                                  int part) {
  if (!found.batches[part].empty()) return std::make_unique<cifar10_source>(found.batches[part]);
  if (found.images[part].empty() || found.labels[part].empty())
    throw error(fmt::format("{}: has {} but not the {} that belong to them", directory,
                            found.images[part].empty() ? found.labels[part] : found.images[part],
                            found.images[part].empty() ? "images" : "labels"));
  return std::make_unique<idx_source>(found.images[part], found.labels[part]);
}

/// The kind of a file, by its name or, if the name has no known ending, by its first bytes.
enum class file_kind {
  recordio,
  tfrecord,
  numpy,
  archive,
  csv,
  tsv,
  json_lines,
  parquet,
  libfm,
  picture,
  tar
};

EDL_INLINE file_kind kind_of_file(std::string const& path) {
  auto const plain = without_packing(path);
  if (ends_as(plain, ".csv")) return file_kind::csv;
  if (ends_as(plain, ".tsv")) return file_kind::tsv;
  if (ends_as(plain, ".jsonl") || ends_as(plain, ".ndjson")) return file_kind::json_lines;
  if (ends_as(path, ".parquet")) return file_kind::parquet;
  if (ends_as(path, ".tar")) return file_kind::tar;
  if (ends_as(path, ".libfm") || ends_as(path, ".libsvm")) return file_kind::libfm;
  if (ends_as(path, ".npy")) return file_kind::numpy;
  if (ends_as(path, ".npz")) return file_kind::archive;
  if (names_picture(path)) return file_kind::picture;
  if (path.find(".tfrecord", path.find_last_of('/') + 1) != path.npos) return file_kind::tfrecord;
  std::error_code unknown;
  bool const file = std::filesystem::is_regular_file(path, unknown);
  return file && is_tfrecord(path) ? file_kind::tfrecord : file_kind::recordio;
}

/// The directory of a path, and the name within it.
EDL_INLINE std::pair<std::string, std::string> taken_apart(std::string const& path) {
  auto const slash = path.find_last_of('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

/// Published files are read together: a single one holds only images or labels, or a part of them.
EDL_INLINE void refuse_published(std::string const& path) {
  auto const [directory, name] = taken_apart(path);
  auto const one = find_published(directory, {name});
  if (!one.has(0) && !one.has(1)) return;
  auto const all = find_published(directory, list_directory(directory).files);
  throw error(fmt::format("{}: is one of several published files; name the directory that holds them: {}{}",
                          path, directory,
                          !all.has(0) || !all.has(1) ? ""
                          : one.has(0)               ? "/train"
                                                     : "/test"));
}

inline constexpr std::string_view read_by_ending =
    ".csv, .tsv, .jsonl and .ndjson (also .gz or .zst), .parquet, .npy, .npz, .tar, .libfm and .libsvm";

/// If the name's ending is unknown, the first bytes must be RecordIO's. A file without an ending may be a
/// damaged one.
EDL_INLINE void refuse_unknown(std::string const& path) {
  auto const name = taken_apart(path).second;
  auto const point = name.find_last_of('.');
  if (point == name.npos || point == 0) return;
  for (std::string_view const own : {".recordio", ".rio", ".rec"})
    if (ends_as(name, own)) return;
  input_file const file{path};
  char first[4] = {};
  if (file.size() >= sizeof first) file.read(0, first, sizeof first);
  if (file.size() == 0 || std::string_view(first, sizeof first) == "\4\3\2\1") return;
  throw error(fmt::format(
      "{}: '{}' files are not read, and it does not begin as RecordIO or TFRecord do; read are {}", path,
      edl::printable(name.substr(point), 32), read_by_ending));
}

/// Opens files of one kind as one source; null if each is a source of its own.
EDL_INLINE std::unique_ptr<source> open_together(std::vector<std::string> const& paths, file_kind kind,
                                                 source_options const& options) {
  if (kind == file_kind::recordio) {
    std::ranges::for_each(paths, refuse_published);
    std::ranges::for_each(paths, refuse_unknown);
    return std::make_unique<recordio_source>(paths, options);
  }
  if (kind == file_kind::tfrecord) return std::make_unique<tfrecord_source>(paths, options);
  if (kind == file_kind::numpy) return std::make_unique<numpy_source>(paths);
  if (kind == file_kind::tar) return std::make_unique<web_dataset>(paths);
  return nullptr;
}

/// Whether a file has zero bytes, and so no records, whatever its name.
inline bool is_blank(std::string const& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown) && std::filesystem::file_size(path, unknown) == 0;
}

EDL_INLINE std::unique_ptr<source> open_file(std::string const& path, source_options const& options) {
  if (is_blank(path)) throw error(fmt::format("{}: holds no records", path));
  auto const table = [&](csv_options how) {
    how.missing = options.missing;
    how.known = options.known;
    return std::make_unique<csv_source>(path, std::move(how));
  };
  if (options.as == format::census) return table(census_options());
  if (options.as == format::criteo) return table(criteo_options());
  if (options.as == format::libfm) return std::make_unique<libfm_source>(path);
  auto const kind = kind_of_file(path);
  switch (kind) {
    case file_kind::csv:
      return table({.delimiter = options.csv_delimiter});
    case file_kind::tsv:
      return table({.delimiter = '\t'});
    case file_kind::json_lines:
      return std::make_unique<json_lines_source>(path);
    case file_kind::parquet:
      return std::make_unique<parquet_source>(path, options);
    case file_kind::libfm:
      return std::make_unique<libfm_source>(path);
    case file_kind::archive:
      return std::make_unique<numpy_source>(std::vector{path});
    case file_kind::picture:
      throw error(fmt::format("{}: is a picture; name the folder with the folders of its classes", path));
    default:
      return open_together({path}, kind, options);
  }
}

/// Opens the pictures in the folders of a directory that holds no files of its own; null if there are none.
EDL_INLINE std::unique_ptr<source> open_folders(std::string const& directory, listing const& of) {
  std::string deeper;
  for (auto const& folder : of.folders) {
    if (clearly_no_data(folder)) continue;
    auto const inside = list_directory(directory + "/" + folder);
    if (std::ranges::any_of(inside.files, [](auto const& name) { return names_picture(name); }))
      return std::make_unique<picture_folder>(directory);
    if (deeper.empty() && !inside.folders.empty()) deeper = directory + "/" + folder;
  }
  if (!deeper.empty())
    throw error(fmt::format("{}: holds folders of folders; name one of them, such as {}", directory, deeper));
  return nullptr;
}

EDL_INLINE std::unique_ptr<source> open_directory(std::string const& directory,
                                                  source_options const& options) {
  auto const all = list_directory(directory);
  auto const found = find_published(directory, all.files);
  if (found.has(0) && found.has(1))
    throw error(fmt::format("{0}: holds training and test files; name {0}/train or {0}/test", directory));
  if (found.has(0) || found.has(1)) return open_published(directory, found, found.has(0) ? 0 : 1);
  std::vector<std::string> paths;
  for (auto const& name : all.files)
    if (!clearly_no_data(name)) paths.push_back(directory + "/" + name);
  // An empty file does not determine the kind of the others.
  auto const telling = std::ranges::find_if(paths, [](auto const& path) {
    std::error_code unknown;
    return std::filesystem::file_size(path, unknown) != 0;
  });
  if (telling == paths.end())
    if (auto pictures = open_folders(directory, all)) return pictures;
  if (paths.empty()) throw error(fmt::format("{}: holds no data files", directory));
  if (std::ranges::all_of(paths, [](auto const& path) { return names_picture(path); }))
    return std::make_unique<picture_folder>(directory);
  auto const kind = kind_of_file(telling == paths.end() ? paths.front() : *telling);
  bool const same = std::ranges::all_of(paths, [&](auto const& path) {
    return kind == file_kind::recordio || kind == file_kind::tfrecord || kind_of_file(path) == kind;
  });
  if (auto together = same ? open_together(paths, kind, options) : nullptr) return together;
  auto const name = paths.front().substr(directory.size() + 1);
  throw error(
      fmt::format("{}: holds files of a kind that are named one by one, or by a pattern: {} or {}/*{}",
                  directory, paths.front(), directory, name.substr(std::min(name.find('.'), name.size()))));
}

/// Opens `directory/train` or `directory/test`, if it does not exist, as a part of the published files in
/// `directory`.
EDL_INLINE std::unique_ptr<source> open_part(std::string const& path) {
  auto const [parent, name] = taken_apart(path);
  std::error_code unknown;
  if ((name != "train" && name != "test") || !std::filesystem::is_directory(parent, unknown)) return nullptr;
  auto const found = find_published(parent, list_directory(parent).files);
  int const part = name == "train" ? 0 : 1;
  return found.has(part) ? open_published(parent, found, part) : nullptr;
}

EDL_INLINE std::unique_ptr<source> open_drawn(std::string const& name) {
  if (name == "synthetic:train") return std::make_unique<synthetic_source>();
  if (name == "synthetic:test")
    return std::make_unique<synthetic_source>(synthetic_options{.records = 10'000, .seed = 1});
  if (name == "synthetic:pictures")
    return std::make_unique<synthetic_source>(synthetic_options{.records = 50'000, .pictures = true});
  if (name == "synthetic:pictures-test")
    return std::make_unique<synthetic_source>(
        synthetic_options{.records = 10'000, .seed = 1, .pictures = true});
  if (name == "synthetic:clicks")
    return std::make_unique<synthetic_clicks>(synthetic_options{.records = 200'000});
  if (name == "synthetic:clicks-test")
    return std::make_unique<synthetic_clicks>(synthetic_options{.records = 20'000, .seed = 1});
  throw error(
      fmt::format("{}: drawn records are synthetic:train, synthetic:test (digits), synthetic:pictures, "
                  "synthetic:pictures-test, synthetic:clicks or synthetic:clicks-test",
                  name));
}

inline std::filesystem::file_type type_of(std::string const& path) {
  std::error_code failure;
  auto const type = std::filesystem::status(path, failure).type();
  if (failure && type != std::filesystem::file_type::not_found)
    throw error(fmt::format("{}: cannot be read: {}", path, failure.message()));
  return type;
}

/// The paths that a list, a pattern or both denote. Empty: the text is neither.
EDL_INLINE std::vector<std::string> expanded(std::string const& path) {
  std::vector<std::string> all;
  if (path.find(',') == path.npos && !is_pattern(path)) return all;
  for (std::size_t begin = 0; begin <= path.size();) {
    auto const end = std::min(path.find(',', begin), path.size());
    std::string const part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) throw error(fmt::format("{}: a path of the list is empty", path));
    if (!is_pattern(part) || type_of(part) != std::filesystem::file_type::not_found) {
      all.push_back(part);
      continue;
    }
    auto const matching = matching_paths(part);
    if (matching.empty()) all.push_back(part);  // another kind of name, or a missing file
    all.insert(all.end(), matching.begin(), matching.end());
  }
  return all;
}

EDL_INLINE std::unique_ptr<source> open_path(std::string path, source_options const& options,
                                             opener const& own, bool alone);

EDL_INLINE std::unique_ptr<source> open_list(std::vector<std::string> const& paths,
                                             source_options const& options, opener const& own) {
  std::vector<std::pair<std::string, std::unique_ptr<source>>> parts;
  for (auto const& path : paths) parts.emplace_back(path, own ? own(path, options) : nullptr);
  bool const plain = options.as == format::automatic && std::ranges::all_of(parts, [](auto const& part) {
                       return !part.second && type_of(part.first) == std::filesystem::file_type::regular;
                     });
  if (plain) {
    auto const kind = kind_of_file(paths.front());
    if (std::ranges::all_of(paths, [&](auto const& p) { return kind_of_file(p) == kind; }))
      if (auto together = open_together(paths, kind, options)) return together;
  }
  std::erase_if(parts, [](auto const& part) { return !part.second && is_blank(part.first); });
  if (parts.empty())
    throw error(fmt::format("{}: holds no records, nor does any other file of the set", paths.front()));
  for (auto& [path, opened] : parts)
    if (!opened) opened = open_path(path, options, {}, false);
  if (parts.size() == 1) return std::move(parts.front().second);
  return std::make_unique<joined_source>(std::move(parts));
}

EDL_INLINE std::unique_ptr<source> open_path(std::string path, source_options const& options,
                                             opener const& own, bool alone) {
  if (alone && type_of(path) == std::filesystem::file_type::not_found)
    if (auto const paths = expanded(path); !paths.empty()) return open_list(paths, options, own);
  if (own)
    if (auto opened = own(path, options)) return opened;
  if (path.starts_with("synthetic:")) return open_drawn(path);
  if (path.starts_with("text:")) return text_source::open_named(path);
  if (path.starts_with("tokens:")) return token_source::open_named(path);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  auto const type = type_of(path);
  if (type == std::filesystem::file_type::not_found) {
    if (auto part = open_part(path)) return part;
    if (path.starts_with("s3://"))
      throw error(path + ": objects are read by commands, and not here; copy them to a directory first");
    throw error(fmt::format("{}: {}", path,
                            is_pattern(path) ? "no path matches the pattern" : "no such file or directory"));
  }
  bool const directory = type == std::filesystem::file_type::directory && options.as == format::automatic;
  return directory ? open_directory(path, options) : open_file(path, options);
}

}  // namespace detail

EDL_INLINE missing_words read_missing_words(std::string_view flag) {
  if (flag == "auto") return std::nullopt;
  missing_words all{std::in_place};
  for (std::size_t begin = 0; begin <= flag.size();) {
    auto const end = std::min(flag.find(',', begin), flag.size());
    all->emplace_back(trimmed(flag.substr(begin, end - begin)));
    if (all->back().empty() && !flag.empty())
      throw usage_error(
          fmt::format("--missing={}: a word of the list is empty, and empty cells count as missing anyhow: "
                      "write words with ',' between them, as NA,?",
                      edl::printable(flag, 64)));
    begin = end + 1;
  }
  if (auto const usual = std::ranges::find(*all, "auto"); usual != all->end()) {
    all->erase(usual);
    for (char const* const word : {"NA", "N/A", "n/a", "null", "NULL", "None", "?", "-"})
      if (std::ranges::find(*all, word) == all->end()) all->emplace_back(word);
  }
  return all;
}

EDL_INLINE std::unique_ptr<source> open_source(std::string const& path, source_options const& options,
                                               opener const& own) {
  if (path.empty()) throw error("the path of a data set is empty");
  auto opened = detail::open_path(path, options, own, true);
  for (shard const& s : opened->shards())
    if (!is_utf8(s.name))
      throw error(fmt::format("{}: the name of the file {} is not UTF-8; rename it", path,
                              edl::printable(s.name, 256)));
  if (records(*opened) == 0) {
    auto const damage = opened->damage();
    auto const end = path.find_last_not_of('/');
    throw error(fmt::format("{}: holds no records{}", end == path.npos ? path : path.substr(0, end + 1),
                            damage.empty()
                                ? ""
                                : fmt::format("; damaged: {}; only RecordIO and TFRecord are recognized by "
                                              "their bytes, other formats by the file's extension: {}",
                                              damage.front(), detail::read_by_ending)));
  }
  return opened;
}

}  // namespace edl::data
