// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/data/cifar10.hpp"
#include "edl/data/csv.hpp"
#include "edl/data/idx.hpp"
#include "edl/data/libfm.hpp"
#include "edl/data/published_tables.hpp"
#include "edl/data/recordio_source.hpp"
#include "edl/data/source.hpp"
#include "edl/data/synthetic.hpp"
#include "edl/data/synthetic_clicks.hpp"
#include "edl/data/text.hpp"

namespace edl::data {
namespace detail {

/// A directory's regular files by name, hidden ones left out.
EDL_INLINE std::vector<std::string> file_names(std::string const& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  auto it = std::filesystem::directory_iterator(directory, failure);
  for (; !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    auto name = it->path().filename().string();
    std::error_code unknown;  // of a link to nowhere: opening it will tell
    if (name.starts_with('.') || it->is_directory(unknown)) continue;
    names.push_back(std::move(name));
  }
  if (failure) throw error(fmt::format("{}: cannot be listed: {}", directory, failure.message()));
  std::sort(names.begin(), names.end());
  return names;
}

inline bool clearly_no_data(std::string_view name) {
  static constexpr std::array<std::string_view, 12> endings{".md",     ".txt",  ".json", ".yaml",
                                                            ".yml",    ".html", ".log",  ".md5",
                                                            ".sha256", ".crc",  ".tmp",  ".partial"};
  return name.starts_with('_') || name.starts_with("README") || name.starts_with("LICENSE") ||
         std::any_of(endings.begin(), endings.end(), [&](auto e) { return name.ends_with(e); });
}

/// The published files that a directory holds, for training and for testing.
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
      // The second form is how some mirrors name them.
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

EDL_INLINE std::unique_ptr<source> open_directory(std::string const& directory,
                                                  source_options const& options) {
  auto const names = file_names(directory);
  auto const found = find_published(directory, names);
  if (found.has(0) && found.has(1))
    throw error(fmt::format("{0}: holds training and test files; name {0}/train or {0}/test", directory));
  if (found.has(0) || found.has(1)) return open_published(directory, found, found.has(0) ? 0 : 1);
  std::vector<std::string> paths;
  for (auto const& name : names)
    if (!clearly_no_data(name)) paths.push_back(directory + "/" + name);
  if (paths.empty()) throw error(fmt::format("{}: holds no data files", directory));
  if (std::all_of(paths.begin(), paths.end(), [](auto const& p) { return p.ends_with(".csv"); }))
    throw error(fmt::format("{}: holds CSV files; name one of them, such as {}", directory, paths.front()));
  return std::make_unique<recordio_source>(paths, options);
}

/// `directory/train` and `directory/test` where they do not exist: a part of the published files in
/// `directory`.
EDL_INLINE std::unique_ptr<source> open_part(std::string const& path) {
  auto const slash = path.find_last_of('/');
  auto const name = slash == std::string::npos ? path : path.substr(slash + 1);
  auto const parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  std::error_code unknown;
  if ((name != "train" && name != "test") || !std::filesystem::is_directory(parent, unknown)) return nullptr;
  auto const found = find_published(parent, file_names(parent));
  int const part = name == "train" ? 0 : 1;
  return found.has(part) ? open_published(parent, found, part) : nullptr;
}

}  // namespace detail

EDL_INLINE std::unique_ptr<source> open_source(std::string const& given, source_options const& options) {
  namespace fs = std::filesystem;
  if (given.empty()) throw error("the path of a data set is empty");
  if (given == "synthetic:train") return std::make_unique<synthetic_source>();
  if (given == "synthetic:test")
    return std::make_unique<synthetic_source>(synthetic_options{.records = 10'000, .seed = 1});
  if (given == "synthetic:pictures")
    return std::make_unique<synthetic_source>(synthetic_options{.records = 50'000, .pictures = true});
  if (given == "synthetic:pictures-test")
    return std::make_unique<synthetic_source>(
        synthetic_options{.records = 10'000, .seed = 1, .pictures = true});
  if (given == "synthetic:clicks")
    return std::make_unique<synthetic_clicks>(synthetic_options{.records = 200'000});
  if (given == "synthetic:clicks-test")
    return std::make_unique<synthetic_clicks>(synthetic_options{.records = 20'000, .seed = 1});
  if (given.starts_with("text:")) return text_source::open_named(given);
  auto path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::error_code failure;
  auto const status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) {
    if (auto part = detail::open_part(path)) return part;
    if (path.starts_with("synthetic:"))
      throw error(
          fmt::format("{}: drawn records are synthetic:train, synthetic:test (digits), synthetic:pictures, "
                      "synthetic:pictures-test, synthetic:clicks or synthetic:clicks-test",
                      path));
    throw error(fmt::format("{}: there is no such file or directory", path));
  }
  if (failure) throw error(fmt::format("{}: cannot be read: {}", path, failure.message()));
  bool const directory = fs::is_directory(status);
  bool const libfm =
      options.as == format::libfm || (!directory && (path.ends_with(".libfm") || path.ends_with(".libsvm")));
  std::unique_ptr<source> opened;
  if (options.as == format::census) {
    opened = std::make_unique<csv_source>(path, census_options());
  } else if (options.as == format::criteo) {
    opened = std::make_unique<csv_source>(path, criteo_options());
  } else if (libfm) {
    opened = std::make_unique<libfm_source>(path);
  } else if (directory) {
    opened = detail::open_directory(path, options);
  } else if (path.ends_with(".csv")) {
    opened = std::make_unique<csv_source>(path, csv_options{.delimiter = options.csv_delimiter});
  } else {
    opened = std::make_unique<recordio_source>(std::vector{path}, options);
  }
  if (records(*opened) == 0) {
    auto const damage = opened->damage();
    throw error(
        fmt::format("{}: holds no records{}", path, damage.empty() ? "" : "; damaged: " + damage.front()));
  }
  return opened;
}

}  // namespace edl::data
