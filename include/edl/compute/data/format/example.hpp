// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include <xtensor/xstrided_view.hpp>

#include "edl/compute/data/tensor_view.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/span.hpp"

namespace edl {

struct feature_error;

namespace detail {

/// Throws feature_error if this many values with `given` extents cannot be read with these extents.
void check_extents(std::string_view name, std::size_t values, view<std::size_t> given,
                   view<std::size_t> extents);

/// Throws feature_error: `feed` reads value `at`, which the record does not have.
[[noreturn]] void refuse_value(std::string_view name, std::int64_t at, std::size_t size);

}  // namespace detail

/// Whether values with `given` extents may be read with the `wanted` ones. A flat list may be; otherwise
/// extents must be equal, even if the number of values is. Extents of 1 are ignored.
bool fits_extents(view<std::size_t> given, view<std::size_t> wanted);

/// Extents for errors, as "2 × 4 × 1"; "1" if there are none.
std::string shown_extents(view<std::size_t> extents);

/// The values of a feature. Throws data_error for an index beyond the last.
template <class T>
struct value_list : view<T> {
  value_list(view<T> of, std::string_view feature, view<std::size_t> given = {})
      : view<T>(of), name(feature), extents(given) {}

  T const& operator[](std::size_t at) const {
    if (at >= this->size()) detail::refuse_value(name, std::int64_t(at), this->size());
    return view<T>::operator[](at);
  }

  std::string_view name;
  view<std::size_t> extents;  ///< `example::extents`
};

template <class T, std::size_t Rank>
class value_view;

}  // namespace edl

namespace xt {

template <class T, std::size_t Rank>
struct xcontainer_inner_types<edl::value_view<T, Rank>> : edl::detail::tensor_view_types<T const, Rank> {};
template <class T, std::size_t Rank>
struct xiterable_inner_types<edl::value_view<T, Rank>> : xcontainer_iterable_types<edl::value_view<T, Rank>> {
};

}  // namespace xt

namespace edl {

/// The same as an xtensor view.
template <class T, std::size_t Rank>
class value_view : public detail::tensor_view<value_view<T, Rank>, T const, Rank> {
 public:
  /// Throws data_error if the record has another number of values.
  value_view(value_list<T> of, std::array<std::size_t, Rank> const& extents)
      : detail::tensor_view<value_view, T const, Rank>(
            of.data(), (detail::check_extents(of.name, of.size(), of.extents, extents), extents)),
        name_(of.name),
        given_(of.extents) {}

  /// All values of a list, flat.
  explicit value_view(value_list<T> of)
    requires(Rank == 1)
      : detail::tensor_view<value_view, T const, Rank>(of.data(), {of.size()}),
        name_(of.name),
        given_(of.extents) {}

  template <std::integral... At>
    requires(sizeof...(At) == Rank)
  T const& operator()(At... at) const {
    std::size_t i = 0, offset = 0;
    (..., [&](std::int64_t one) {
      std::size_t const extent = this->shape()[i++];
      if (std::uint64_t(one) >= extent) detail::refuse_value(name_, one, extent);
      offset = offset * extent + std::size_t(one);
    }(std::int64_t(at)));
    return this->data()[offset];
  }
  T const& operator[](std::size_t at) const
    requires(Rank == 1)
  {
    return (*this)(at);
  }

  std::string_view feature() const { return name_; }
  view<std::size_t> given() const { return given_; }

 private:
  std::string_view name_;
  view<std::size_t> given_;
};

namespace detail {

template <class>
inline constexpr bool is_value_view = false;
template <class T>
inline constexpr bool is_value_view<value_view<T, 1>> = true;

}  // namespace detail

/// One record: named features, each a list of floats, of integers or of byte strings, as in tf.train.Example
/// (tensorflow/core/example/example.proto). Storage is reused from record to record. Returned views are valid
/// until the next record is read into it. Reading a feature that the record lacks, or that has another kind,
/// throws feature_error, which names the feature and lists those of the record. A cell of a table also keeps
/// the kind of its own text: a whole number in a column of fractions, or a number in one of texts. Thread
/// safety: distinct objects: safe. Shared objects: safe while only read.
class example {
 public:
  enum class kind : std::uint8_t { none, strings, floats, integers };

  /// A list of numbers as a read-only xtensor view of this shape, without a copy: `floats("image", {28, 28,
  /// 1})`. Converts integers of the record. Throws data_error if the record has another number of them.
  template <std::size_t Rank>
  auto floats(std::string_view name, std::size_t const (&extents)[Rank]) const {
    return value_view(float_values(name), std::to_array(extents));
  }
  template <std::size_t Rank>
  auto integers(std::string_view name, std::size_t const (&extents)[Rank]) const {
    return value_view(integer_values(name), std::to_array(extents));
  }

  /// The same with all of the record's values. // (n)
  auto floats(std::string_view name) const { return value_view<float, 1>(float_values(name)); }
  auto integers(std::string_view name) const { return value_view<std::int64_t, 1>(integer_values(name)); }

  /// The same lists as spans.
  value_list<float> float_values(std::string_view name) const;
  value_list<std::int64_t> integer_values(std::string_view name) const;

  /// The only integer of a feature.
  std::int64_t integer(std::string_view name) const;

  /// The only number of a feature; an integer is converted (a column of a CSV file may happen to have no
  /// fractions).
  float floating(std::string_view name) const;

  /// The only byte string of a feature, or the one at `index`.
  std::string_view bytes(std::string_view name) const;
  std::string_view bytes(std::string_view name, std::size_t index) const;

  bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The number of values of a feature; 0 if the record lacks it.
  std::size_t count(std::string_view name) const;

  /// The extents of its values in the source, e.g. of an array; empty: a list, or the record lacks it.
  view<std::size_t> extents(std::string_view name) const;
  view<std::size_t> extents(std::size_t feature) const { return extents_of(features_[feature]); }

  /// Features in the order in which they were read.
  std::size_t size() const { return features_.size(); }
  std::string_view name(std::size_t feature) const;
  kind kind_of(std::size_t feature) const { return features_[feature].type; }
  std::vector<std::string_view> names() const;

  /// Reads a serialised tf.train.Example. Throws data_error, with the offset, if it is malformed; the record
  /// is then empty. As in protobuf, the later of two features with one name counts, and unknown fields are
  /// skipped.
  void parse(std::string_view serialised);

  void clear();

 private:
  friend class example_builder;
  friend class example_parser;
  static constexpr std::size_t none = std::size_t(-1);
  struct entry {
    std::size_t name = 0, name_size = 0;  // in text_
    kind type = kind::none;
    std::size_t first = 0, count = 0;  // in the pool of its kind
    std::size_t as_floats = none;      // index of integers among the floats, once converted
    std::size_t as_integers = none;    // index among the integers, for others that are whole numbers
    std::size_t first_extent = 0, rank = 0;
  };
  struct slice {
    std::size_t first = 0, size = 0;  // in text_
  };

  std::string_view text_of(entry const& f) const {
    return std::string_view(text_).substr(f.name, f.name_size);
  }
  std::string_view bytes_at(entry const& f, std::size_t index) const;
  entry const* find(std::string_view name) const;
  view<std::size_t> extents_of(entry const& f) const {
    return view<std::size_t>(extents_).subspan(f.first_extent, f.rank);
  }
  entry const& need(std::string_view name, kind what) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view wanted, kind what, bool one = true,
                           std::size_t values = 1) const;
  entry& add(std::string_view name);
  void add_floats();

  // Pools, so that a record allocates nothing after they have grown.
  std::vector<entry> features_;
  std::vector<float> floats_;
  std::vector<std::int64_t> integers_;
  std::vector<slice> slices_;
  std::vector<std::size_t> extents_;
  std::string text_;
};

/// A feature of a record is not of the requested kind or size.
struct feature_error : data_error {
  feature_error(std::string const& what, std::string_view name, example::kind expected,
                std::vector<std::size_t> wanted = {}, bool only_one = false)
      : data_error(what), feature(name), kind(expected), extents(std::move(wanted)), one(only_one) {}

  std::string feature;
  example::kind kind;                ///< the requested kind; none: its own
  std::vector<std::size_t> extents;  ///< the requested ones; empty: any, or one value
  bool one;
};

/// During its lifetime, records the features that this thread reads, including missing ones. Thread safety:
/// each thread has its own.
class asked_features {
 public:
  struct asked {
    std::size_t place = 0;                     ///< its position among the features read
    example::kind kind = example::kind::none;  ///< none: unknown, or texts at one time and numbers at another
    std::vector<std::size_t> extents = {};     ///< in which it is read; empty: as a list
    bool texts = false, numbers = false;       ///< was asked for as these
  };

  asked_features() : before_(now_) { now_ = this; }
  ~asked_features() { now_ = before_; }
  asked_features(asked_features const&) = delete;

  static void note(std::string_view name, example::kind what = example::kind::none,
                   view<std::size_t> extents = {}) {
    if (now_ != nullptr) [[unlikely]]
      now_->add(name, what, extents);
  }

  std::map<std::string, asked, std::less<>> all;

 private:
  void add(std::string_view name, example::kind what, view<std::size_t> extents) {
    using enum example::kind;
    auto at = all.find(name);
    if (at == all.end()) at = all.emplace(name, asked{.place = all.size()}).first;
    asked& a = at->second;
    if (!extents.empty()) a.extents.assign(extents.begin(), extents.end());
    if (what == none) return;
    (what == strings ? a.texts : a.numbers) = true;
    a.kind = a.texts && a.numbers ? none : a.kind == floats ? floats : what;
  }

  static inline constinit thread_local asked_features* now_ = nullptr;
  asked_features* before_;
};

}  // namespace edl

template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<edl::value_list<T>> = true;

namespace xt {

/// Replaces xtensor's own, which reads past the end if a record has fewer values than the shape.
template <layout_type L = XTENSOR_DEFAULT_TRAVERSAL, class Values, class Extent, std::size_t Rank>
  requires edl::detail::is_value_view<std::decay_t<Values>>
auto reshape_view(Values&& of, Extent const (&extents)[Rank]) {
  std::array<std::size_t, Rank> shape{};
  for (std::size_t i = 0; i < Rank; ++i) shape[i] = std::size_t(extents[i]);
  edl::detail::check_extents(of.feature(), of.size(), of.given(), shape);
  return reshape_view<L>(std::forward<Values>(of), std::move(shape));
}

}  // namespace xt

namespace edl {

/// Fills an example, for sources that are not serialised and for writing. Throws edl::error for a duplicate
/// name. Thread safety: as its example's.
class example_builder {
 public:
  /// Empties `into`, then fills it.
  explicit example_builder(example& into);
  example_builder(example_builder const&) = delete;
  ~example_builder() { into_.add_floats(); }  // of integers, which are written by now

  /// Room for `count` values, to be written before the next call.
  std::span<float> floats(std::string_view name, std::size_t count);
  std::span<std::int64_t> integers(std::string_view name, std::size_t count);

  void floats(std::string_view name, view<float> values);
  void integers(std::string_view name, view<std::int64_t> values);
  void floating(std::string_view name, float value) { floats(name, 1)[0] = value; }
  void integer(std::string_view name, std::int64_t value) { integers(name, 1)[0] = value; }
  void bytes(std::string_view name, std::string_view value);

  /// Sets the extents of the last feature; their product must be its number of values.
  void extents(view<std::size_t> of);

  /// Lets the last feature be read as these values, too; their number must be the same.
  void also(view<std::int64_t> values);
  void also(std::int64_t value) { also(view<std::int64_t>(&value, 1)); }
  void also(float value);
  void bytes(std::string_view name, std::span<std::string_view const> values);

 private:
  example::entry& add(std::string_view name, example::kind what, std::size_t first, std::size_t count);

  example& into_;
};

/// Serialises as tf.train.Example, with features sorted by name, so that equal records give equal bytes.
void encode(example const& record, std::string& into);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/example.ipp"
#endif
