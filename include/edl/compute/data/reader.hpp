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

/// A part of a data set, usually a file. Its records are numbered from 0.
struct shard {
  std::string name;  ///< a file's name within the data set
  std::uint64_t records = 0;

  friend bool operator==(shard const&, shard const&) = default;
};

/// One thread's access to a source: it has open files and caches. Thread safety: distinct objects: safe.
/// Shared objects: unsafe.
class reader {
 public:
  virtual ~reader() = default;

  /// Reads one record, by its place in the source's shards. Throws data_error, which names file and record.
  virtual void read(std::size_t shard, std::uint64_t record, example& into) = 0;
};

/// An ordered set of records, independent of file formats, so that one `feed` reads any of them. Two
/// processes that open one path see the same shards. Thread safety: safe; each thread opens its own reader,
/// which must not outlive the source.
class source {
 public:
  virtual ~source() = default;

  virtual std::vector<shard> const& shards() const = 0;
  virtual std::unique_ptr<reader> open() const = 0;

  /// A number that differs, with very high probability, if the content of a shard differs. It is computed
  /// cheaply, for example from the checksums of RecordIO's chunks. 0: there is none.
  virtual std::uint64_t digest(std::size_t /*shard*/) const { return 0; }

  /// The number of a record in the user's file, if this source is a part of it.
  virtual std::uint64_t number_in_file(std::size_t /*shard*/, std::uint64_t record) const { return record; }

  /// The line of a record in that file, from 1; 0: it has no lines. Used in errors.
  virtual std::uint64_t line_in_file(std::size_t /*shard*/, std::uint64_t /*record*/) const { return 0; }

  /// The path of a file that contains only this record, like a picture; empty if its shard is the file.
  virtual std::string own_file(std::size_t /*shard*/, std::uint64_t /*record*/) const { return {}; }

  /// With `skip_damaged`: what was skipped when the source was opened, one line each.
  virtual std::span<std::string const> damage() const { return {}; }

  /// If labels are indices of classes: the classes' names, in this order.
  virtual std::span<std::string const> classes() const { return {}; }

  /// The features that a record can have, e.g. the columns of a table; empty: any.
  virtual std::vector<std::string> features() const { return {}; }

  /// Notes for the user about the records that are not damage, one line each.
  virtual std::span<std::string const> notes() const { return {}; }

  /// A line that lists the words that count as missing by default; empty: none occurred. The sets of one job
  /// return the same, so that one line is enough.
  virtual std::string missing_note() const { return {}; }
};

/// Instantiated for a custom reader, so that the compiler's message names it and its missing parts.
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

/// Makes a custom reader from its constructor's arguments, for a source's `open`.
template <class R, class... Of>
std::unique_ptr<reader> make_reader(Of&&... of) {
  if constexpr (is_a_reader<R>::derives && is_a_reader<R>::reads)
    return std::make_unique<R>(std::forward<Of>(of)...);
  else
    return nullptr;
}

/// The same for a source.
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

/// Makes a custom source from its constructor's arguments, for a model's `open`.
template <class S, class... Of>
std::unique_ptr<source> make_source(Of&&... of) {
  if constexpr (is_a_source<S>::derives && is_a_source<S>::has_shards && is_a_source<S>::opens)
    return std::make_unique<S>(std::forward<Of>(of)...);
  else
    return nullptr;
}

/// Describes a record for the user: its own file, or its number and line in a file.
inline std::string place_of(source const& from, std::size_t shard, std::uint64_t record) {
  if (std::string own = from.own_file(shard, record); !own.empty()) return own;
  std::uint64_t const line = from.line_in_file(shard, record);
  return "record " + std::to_string(from.number_in_file(shard, record)) + " of " + from.shards()[shard].name +
         (line > 0 ? ", line " + std::to_string(line) : std::string());
}

/// Calls `act` for a record, and adds the record's place to its errors.
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

/// The format of a file whose name does not determine it.
enum class format {
  automatic,  ///< by its name
  census,     ///< UCI's adult.data and adult.test
  criteo,     ///< the click logs of Criteo's challenge of 2014, with tabs
  libfm       ///< as `.libfm` and `.libsvm` files
};

/// The texts of cells that count as empty, in any column of a table. If not set: NA, N/A, n/a, null, NULL,
/// None, ? and - in columns of numbers.
using missing_words = std::optional<std::vector<std::string>>;

struct table_column;

struct source_options {
  format as = format::automatic;  ///< of a file
  bool skip_damaged = false;      ///< skip damaged parts of a file instead of refusing it
  char csv_delimiter = ',';       ///< between the fields of a `.csv` file
  missing_words missing = {};     ///< of tables
  std::shared_ptr<std::vector<table_column> const> known =
      {};                                 ///< of a CSV file, whose few cells may be misleading
  std::size_t cache_bytes = 64ull << 20;  ///< of unpacked chunks, about, per reader
};

/// Opens the records at a path in a custom format. Returns null if the path has another format. All processes
/// that open one path must see the same shards.
using opener = std::function<std::unique_ptr<source>(std::string const& path, source_options const& options)>;

}  // namespace edl::data
