// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example_builder.hpp"
#include "edl/compute/data/format/picture_file.hpp"
#include "edl/compute/data/format/picture_folder.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/random.hpp"

namespace edl::data {
namespace detail {

class picture_reader final : public reader {
 public:
  explicit picture_reader(picture_folder const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard != 0 || record >= from_.files_.size())
      throw data_error(fmt::format("{}: there is no picture {}, it has {}", from_.directory_, record,
                                   from_.files_.size()));
    auto const& [of_class, name] = from_.files_[std::size_t(record)];
    std::string const path = from_.own_file(shard, record);
    constexpr std::uint64_t most_bytes = 256u << 20;
    try {
      decode_picture(read_all(path, most_bytes), pixels_);
    } catch (data_error const& e) {
      if (std::string_view(e.what()).starts_with(path)) throw;
      throw data_error(fmt::format("{}: {}", path, e.what()));
    }
    example_builder build{into};
    std::ranges::copy(pixels_.values, build.floats("image", pixels_.values.size()).begin());
    build.integer("height", pixels_.extents.height);
    build.integer("width", pixels_.extents.width);
    if (!from_.classes_.empty()) build.integer("label", of_class);
    build.bytes("file", name);
  }

 private:
  picture_folder const& from_;
  pixels pixels_;
};

/// Whether a folder within another is that one itself or holds it, which only links make so.
inline bool leads_back(std::string const& directory, std::string const& folder) {
  std::error_code failure;
  auto const within = std::filesystem::canonical(directory, failure),
             to = std::filesystem::canonical(directory + "/" + folder, failure);
  return !failure && std::ranges::mismatch(to, within).in1 == to.end();
}

/// "a, b and 3 more".
inline std::string few_of(std::vector<std::string> const& names) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i > 0 ? ", " : "") + edl::printable(names[i], 64);
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

}  // namespace detail

EDL_INLINE picture_folder::picture_folder(std::string const& directory) : directory_(directory) {
  auto const top = detail::list_directory(directory);
  for (auto const& name : top.files)
    if (names_picture(name)) files_.push_back({0, name});
  bool const loose = !files_.empty();
  std::vector<std::string> no_classes, left_out;
  for (auto const& folder : top.folders) {
    if (detail::clearly_no_data(folder) || detail::leads_back(directory, folder)) {
      no_classes.push_back(folder);
      continue;
    }
    auto const inside = detail::list_directory(directory + "/" + folder);
    for (auto const& name : inside.files)
      if (names_picture(name))
        files_.push_back({std::uint32_t(classes_.size()), folder + "/" + name});
      else if (!detail::clearly_no_data(name))
        left_out.push_back(folder + "/" + name);
    for (auto const& name : inside.folders) left_out.push_back(folder + "/" + name + "/");
    classes_.push_back(folder);
  }
  if (!no_classes.empty())
    notes_.push_back(
        fmt::format("{}: {} {}: names that begin with _ or README are no data, nor are links back", directory,
                    detail::few_of(no_classes), no_classes.size() == 1 ? "is no class" : "are no classes"));
  if (!left_out.empty())
    notes_.push_back(fmt::format(
        "{}: {} left out: {}; .png, .jpg, .jpeg, .jpe, .jfif and .webp files of a class's folder "
        "are read, and no folders in it",
        directory, left_out.size() == 1 ? "1 entry is" : fmt::format("{} entries are", left_out.size()),
        detail::few_of(left_out)));
  if (loose && !classes_.empty())
    throw data_error(
        fmt::format("{}: has the picture {} beside folders of pictures; put it into the folder of its class",
                    directory, files_.front().name));
  std::vector<std::tuple<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < files_.size() && !loose; ++i) {
    detail::content_digest drawn;
    drawn.add(files_[i].name);
    order.emplace_back(mix(drawn.value(), 0), i);
  }
  std::ranges::sort(order);
  std::vector<file> ordered;
  for (auto const& [drawn, i] : order) ordered.push_back(std::move(files_[i]));
  if (!loose) files_ = std::move(ordered);
  shards_.push_back({directory.substr(directory.find_last_of('/') + 1), files_.size()});
}

EDL_INLINE std::unique_ptr<reader> picture_folder::open() const {
  return std::make_unique<detail::picture_reader>(*this);
}

EDL_INLINE std::string picture_folder::own_file(std::size_t, std::uint64_t record) const {
  return directory_ + "/" + files_.at(std::size_t(record)).name;
}

EDL_INLINE std::uint64_t picture_folder::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  char last[64];
  for (auto const& name : classes_) sum.add(name);
  for (auto const& [of_class, name] : files_) {
    detail::input_file const in(directory_ + "/" + name);
    // PNG's checksums stand there, and the codes of JPEG and WebP depend on all before them.
    auto const n = std::min<std::uint64_t>(sizeof last, in.size());
    in.read(in.size() - n, last, std::size_t(n));
    sum.add(name);
    sum.add(in.size());
    sum.add(std::string_view(last, std::size_t(n)));
  }
  return sum.value();
}

}  // namespace edl::data
