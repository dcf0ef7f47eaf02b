// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "edl/base/bucket/readable.hpp"
#include "edl/compute/data/choosing_reader.hpp"
#include "edl/compute/data/file.hpp"
#include "edl/compute/data/forwarding_source.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/storage_error.hpp"

namespace edl::bucket {
namespace detail {

class named_reader final : public data::choosing_reader {
 public:
  named_reader(std::unique_ptr<data::reader> in, readable const& of)
      : in_(std::move(in)), chooses_(dynamic_cast<choosing_reader*>(in_.get())), of_(of) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    of_.use([&] { in_->read(shard, record, into); });
  }
  void choose(data::feature_names const* names) override {
    if (chooses_) chooses_->choose(names);
  }
  bool leaves_out(std::string_view name) const override { return chooses_ && chooses_->leaves_out(name); }

 private:
  std::unique_ptr<data::reader> in_;
  choosing_reader* chooses_;
  readable const& of_;
};

/// Records in a copy of objects, which it keeps.
template <class Base>
class copied : public data::forwarding<Base> {
 public:
  copied(std::shared_ptr<readable const> at, std::shared_ptr<data::source const> of)
      : data::forwarding<Base>(std::move(of)),
        at_(std::move(at)),
        damage_(all_named(this->inner().damage())),
        notes_(all_named(this->inner().notes())) {}

  std::unique_ptr<data::reader> open() const override {
    return std::make_unique<named_reader>(at_->use([&] { return this->inner().open(); }), *at_);
  }
  std::string own_file(std::size_t shard, std::uint64_t record) const override {
    return at_->named(this->inner().own_file(shard, record));
  }
  std::span<std::string const> damage() const override { return damage_; }
  std::span<std::string const> notes() const override { return notes_; }

 protected:
  readable const& at() const { return *at_; }

 private:
  std::vector<std::string> all_named(std::span<std::string const> lines) const {
    std::vector<std::string> all;
    for (std::string const& line : lines) all.push_back(at_->named(line));
    return all;
  }

  std::shared_ptr<readable const> at_;
  std::vector<std::string> damage_, notes_;
};

/// A table, or several joined ones, in a copy of objects.
class copied_table final : public copied<data::table> {
 public:
  copied_table(std::shared_ptr<readable const> at, std::shared_ptr<data::source> of)
      : copied(std::move(at), of), table_(std::move(of)), columns_(data::columns_of(*table_)) {}

  std::vector<data::table_column> const& columns() const override { return columns_; }
  std::vector<std::string> features() const override { return table_->features(); }
  void agree(std::vector<data::table_column> const& with) override {
    at().use([&] {
      if (auto* const one = dynamic_cast<data::table*>(table_.get())) one->agree(with);
      if (auto* const several = dynamic_cast<data::joined_source*>(table_.get())) several->agree(with);
    });
    columns_ = data::columns_of(*table_);
  }

 private:
  std::shared_ptr<data::source> table_;
  std::vector<data::table_column> columns_;
};

/// Where the path of objects begins in that of records; npos: they are no objects.
inline std::size_t begin_of_objects(std::string_view path) {
  if (names_objects(path)) return 0;
  if (!path.starts_with("text:") && !path.starts_with("tokens:")) return path.npos;
  std::size_t const length = path.find(':') + 1, end = path.find(':', length);
  return end != path.npos && names_objects(path.substr(end + 1)) ? end + 1 : path.npos;
}

}  // namespace detail

EDL_INLINE readable::readable(std::string given, cache_options const& cache) : path_(std::move(given)) {
  if (!names_objects(path_)) return;
  objects_ = without_slashes(path_);
  path_ = copy_.emplace(copy_of(path_, cache)).path();
  // The copy of an object, or of a pattern, ends as its name does.
  auto const same = std::mismatch(path_.rbegin(), path_.rend(), objects_.rbegin(), objects_.rend());
  auto end = std::size_t(same.first - path_.rbegin());
  while (end > 0 && path_[path_.size() - end] != '/') --end;
  directory_ = path_.substr(0, path_.size() - end);
  objects_.resize(objects_.size() - end);
}

EDL_INLINE std::string readable::named(std::string text) const {
  if (!copy_) return text;
  for (std::size_t at = 0; (at = text.find(directory_, at)) != text.npos; at += objects_.size())
    text.replace(at, directory_.size(), objects_);
  return text;
}

EDL_INLINE void readable::rethrow() const try { throw; } catch (error const& e) {
  std::string const text = named(e.what());
  if (text == e.what()) throw;
  if (auto const* const s = dynamic_cast<storage_error const*>(&e)) throw storage_error(s->code(), text);
  if (dynamic_cast<data::detail::unread_error const*>(&e)) throw data::detail::unread_error(text);
  if (dynamic_cast<changed_error const*>(&e)) throw changed_error(text);
  if (dynamic_cast<misfit_error const*>(&e)) throw misfit_error(text);
  if (dynamic_cast<data_error const*>(&e)) throw data_error(text);
  if (dynamic_cast<usage_error const*>(&e)) throw usage_error(text);
  throw error(text);
}

EDL_INLINE data::opener opener_of(cache_options cache, data::opener own) {
  return [cache = std::move(cache), own = std::move(own)](
             std::string const& path, data::source_options const& how) -> std::unique_ptr<data::source> {
    if (own)
      if (auto opened = own(path, how)) return opened;
    auto const begin = detail::begin_of_objects(path);
    if (begin == path.npos) return nullptr;
    auto const at = std::make_shared<readable const>(path.substr(begin), cache);
    std::shared_ptr<data::source> of =
        at->use([&] { return data::open_source(path.substr(0, begin) + at->path(), how); });
    if (data::columns_of(*of).empty()) return std::make_unique<detail::copied<data::source>>(at, of);
    return std::make_unique<detail::copied_table>(at, of);
  };
}

}  // namespace edl::bucket
