// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xstrided_view.hpp>

#include "edl/core/inline.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// One record: named features, each a list of floats, of integers or of byte strings, as in tf.train.Example
/// (tensorflow/core/example/example.proto). Storage is kept from record to record. Whatever it hands out is
/// valid until the next record is read into it. Asking for a feature that the record lacks, or that is of
/// another kind, is a data_error. It names the feature and lists what the record has. Thread safety: distinct
/// objects: safe. Shared objects: safe while only read.
class example {
  template <class T>
  static auto adapt(view<T> of) {
    return xt::adapt(of.data(), of.size(), xt::no_ownership(), std::array<std::size_t, 1>{of.size()});
  }

 public:
  enum class kind : std::uint8_t { none, strings, floats, integers };

  /// A list of numbers as a read-only xtensor view, without a copy; integers are converted.  // (n)
  auto floats(std::string_view name) const { return adapt(float_values(name)); }

  /// A list of integers as a read-only xtensor view, without a copy.  // (n)
  auto integers(std::string_view name) const { return adapt(integer_values(name)); }

  /// The same lists as spans.
  view<float> float_values(std::string_view name) const;
  view<std::int64_t> integer_values(std::string_view name) const;

  /// The only integer of a feature.
  std::int64_t integer(std::string_view name) const;

  /// The only number of a feature; an integer is converted (a column of a CSV file may happen to hold no
  /// fractions).
  float floating(std::string_view name) const;

  /// The only byte string of a feature, or the one at `index`.
  std::string_view bytes(std::string_view name) const;
  std::string_view bytes(std::string_view name, std::size_t index) const;

  bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// How many values a feature has; 0 if the record lacks it.
  std::size_t count(std::string_view name) const;

  /// Features in the order in which they were read.
  std::size_t size() const { return features_.size(); }
  std::string_view name(std::size_t feature) const;
  kind kind_of(std::size_t feature) const { return features_[feature].what; }
  std::vector<std::string_view> names() const;

  /// Becomes the record that a serialised tf.train.Example says. A data_error, with the offset, if it is
  /// malformed; the record is empty then. As protobuf does: of two features of one name the later counts,
  /// unknown fields are skipped.
  void parse(std::string_view serialised);

  void clear();

 private:
  friend class example_builder;
  friend class example_parser;
  static constexpr std::size_t none = std::size_t(-1);
  struct entry {
    std::size_t name = 0, name_size = 0;  // in text_
    kind what = kind::none;
    std::size_t first = 0, count = 0;  // in the pool of its kind
    std::size_t as_floats = none;      // where integers stand among the floats, once they are all there
  };
  struct slice {
    std::size_t first = 0, size = 0;  // in text_
  };

  entry const* find(std::string_view name) const;
  entry const& need(std::string_view name, kind what) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view wanted) const;
  entry& add(std::string_view name);
  void add_floats();

  // Pools, so that a record allocates nothing once they have grown.
  std::vector<entry> features_;
  std::vector<float> floats_;
  std::vector<std::int64_t> integers_;
  std::vector<slice> slices_;
  std::string text_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/data/example.ipp"
#endif
