// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "edl/compute/data/format/example.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// Fills an example, for sources that are not serialised and for writing. A name used twice is a
/// std::logic_error's worth of mistake and an edl::error. Thread safety: as its example's.
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

  /// The extents of the feature that was put last, as many values as it has.
  void extents(view<std::size_t> of);

  /// The feature that was put last may be asked for as these, too; as many as it has.
  void also(view<std::int64_t> values);
  void also(std::int64_t value) { also(view<std::int64_t>(&value, 1)); }
  void also(float value);
  void bytes(std::string_view name, std::span<std::string_view const> values);

 private:
  example::entry& add(std::string_view name, example::kind what, std::size_t first, std::size_t count);

  example& into_;
};

/// Serialises as tf.train.Example; features stand in the order of their names, so that equal records give
/// equal bytes.
void encode(example const& record, std::string& into);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/example_builder.ipp"
#endif
