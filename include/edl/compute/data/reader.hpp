// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "edl/core/error.hpp"

namespace edl {
class example;
}

namespace edl::data {

/// A part of a data set, in general a file. Its records are numbered from 0.
struct shard {
  std::string name;  ///< a file's name within the data set
  std::uint64_t records = 0;

  friend bool operator==(shard const&, shard const&) = default;
};

/// One thread's way into a source: it holds open files and caches.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class reader {
 public:
  virtual ~reader() = default;

  /// Reads one record, by its place in the source's shards. A data_error names file and record.
  virtual void read(std::size_t shard, std::uint64_t record, example& into) = 0;
};

/// An ordered set of records, whatever the files are, so that one feed reads any of them. Two processes that
/// open one path see the same shards. Thread safety: safe; each thread opens its own reader, which must not
/// outlive the source.
class source {
 public:
  virtual ~source() = default;

  virtual std::vector<shard> const& shards() const = 0;
  virtual std::unique_ptr<reader> open() const = 0;

  /// A number that is another when the content of a shard is another, for all that can be expected. It is
  /// made of what tells contents apart at little cost, as the checksums of RecordIO's chunks. 0: there is
  /// none.
  virtual std::uint64_t digest(std::size_t /*shard*/) const { return 0; }

  /// The number of a record in the file that a person has, where this is a part of it.
  virtual std::uint64_t number_in_file(std::size_t /*shard*/, std::uint64_t record) const { return record; }

  /// The line of a record in that file, from 1 on; 0: it has no lines. Asked for where something is wrong.
  virtual std::uint64_t line_in_file(std::size_t /*shard*/, std::uint64_t /*record*/) const { return 0; }

  /// The path of a file that is this record alone, as a picture is; empty where its shard is the file.
  virtual std::string own_file(std::size_t /*shard*/, std::uint64_t /*record*/) const { return {}; }

  /// With `skip_damaged`: what had to be left out when the source was opened, one line each.
  virtual std::span<std::string const> damage() const { return {}; }

  /// Of records whose labels are places in a list: the names of the classes, in this order.
  virtual std::span<std::string const> classes() const { return {}; }

  /// The features that a record can have, as the columns of a table; empty: any.
  virtual std::vector<std::string> features() const { return {}; }

  /// What a person should know of the records that is no damage, one line each.
  virtual std::span<std::string const> notes() const { return {}; }

  /// A line of which words count as missing because nobody has said which do; empty: none was found. Sets of
  /// one job say the same, so that one of them is enough.
  virtual std::string missing_note() const { return {}; }
};

/// Instantiated for a reader that somebody wrote, so that the compiler's own words name it and what it lacks.
template <class R>
struct is_a_reader {
  static constexpr bool derives = std::derived_from<R, reader>;
  static constexpr bool reads = requires(R& r, std::size_t shard, std::uint64_t record, example& into) {
    r.read(shard, record, into);
  } && !requires {
    requires std::same_as<decltype(&R::read), decltype(&reader::read)>;
  } && (!derives || !std::is_abstract_v<R>);
  static_assert(derives, "edl: this reader is not derived from `edl::data::reader`");
  static_assert(
      reads,
      "edl: this reader has no `void read(std::size_t shard, std::uint64_t record, edl::example& into) "
      "override`");
};

/// A source's `open` returns it: a reader of one's own, of what its constructor takes.
template <class R, class... Of>
std::unique_ptr<reader> make_reader(Of&&... of) {
  if constexpr (is_a_reader<R>::derives && is_a_reader<R>::reads)
    return std::make_unique<R>(std::forward<Of>(of)...);
  else
    return nullptr;
}

/// The same of a source.
template <class S>
struct is_a_source {
  static constexpr bool derives = std::derived_from<S, source>;
  static constexpr bool has_shards = requires(S const& s) {
    { s.shards() } -> std::same_as<std::vector<shard> const&>;
  } && !requires { requires std::same_as<decltype(&S::shards), decltype(&source::shards)>; };
  static constexpr bool opens = requires(S const& s) {
    { s.open() } -> std::same_as<std::unique_ptr<reader>>;
  } && !requires { requires std::same_as<decltype(&S::open), decltype(&source::open)>; };
  static_assert(derives, "edl: this source is not derived from `edl::data::source`");
  static_assert(has_shards,
                "edl: this source has no `std::vector<edl::data::shard> const& shards() const override`");
  static_assert(opens, "edl: this source has no `std::unique_ptr<edl::data::reader> open() const override`");
};

/// A model's `open` returns it: a source of one's own, of what its constructor takes.
template <class S, class... Of>
std::unique_ptr<source> make_source(Of&&... of) {
  if constexpr (is_a_source<S>::derives && is_a_source<S>::has_shards && is_a_source<S>::opens)
    return std::make_unique<S>(std::forward<Of>(of)...);
  else
    return nullptr;
}

/// Which record that is, for a person: its own file, or its number in a file, and its line there.
inline std::string place_of(source const& from, std::size_t shard, std::uint64_t record) {
  if (std::string own = from.own_file(shard, record); !own.empty()) return own;
  std::uint64_t const line = from.line_in_file(shard, record);
  return "record " + std::to_string(from.number_in_file(shard, record)) + " of " + from.shards()[shard].name +
         (line > 0 ? ", line " + std::to_string(line) : std::string());
}

/// Does something with a record; an error of it says which record that is.
template <class Act>
void at_record(source const& from, std::size_t shard, std::uint64_t record, Act&& act) {
  auto const placed = [&](char const* what) { return place_of(from, shard, record) + ": " + what; };
  try {
    act();
  } catch (misfit_error const& e) {
    throw misfit_error(placed(e.what()));
  } catch (data_error const& e) {
    throw data_error(placed(e.what()));
  } catch (std::exception const& e) {
    throw error(placed(e.what()));
  } catch (...) {
    throw error(placed("the feed failed"));
  }
}

/// All notes of a source.
inline std::vector<std::string> all_notes(source const& of) {
  std::vector<std::string> all(of.notes().begin(), of.notes().end());
  if (std::string missing = of.missing_note(); !missing.empty()) all.push_back(std::move(missing));
  return all;
}

/// Records of all shards together.
inline std::uint64_t records(source const& of) {
  std::uint64_t all = 0;
  for (auto const& s : of.shards()) all += s.records;
  return all;
}

/// What a file is whose name does not say it.
enum class format {
  automatic,  ///< as the name says
  census,     ///< UCI's adult.data and adult.test
  criteo,     ///< the click logs of Criteo's challenge of 2014, with tabs
  libfm       ///< as `.libfm` and `.libsvm` files
};

/// The texts of cells of a table that count as empty, whatever their column. None: NA, N/A, n/a, null, NULL,
/// None, ? and - do, in columns of numbers.
using missing_words = std::optional<std::vector<std::string>>;

struct table_column;

struct source_options {
  format as = format::automatic;  ///< of a file
  bool skip_damaged = false;      ///< leave out what a damaged file hides instead of refusing the file
  char csv_delimiter = ',';       ///< between the fields of a `.csv` file
  missing_words missing = {};     ///< of tables
  std::shared_ptr<std::vector<table_column> const> known =
      {};                                 ///< of a CSV file, whose few cells may mislead
  std::size_t cache_bytes = 64ull << 20;  ///< of unpacked chunks, about, per reader
};

/// A way to open the records at a path that edl does not know of itself. Null: they are not of its kind. All
/// processes that open one path must see the same shards.
using opener = std::function<std::unique_ptr<source>(std::string const& path, source_options const& options)>;

}  // namespace edl::data
