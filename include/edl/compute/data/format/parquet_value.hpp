// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/parquet_page.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// What the values of a column are to a record, as far as its type tells.
example::kind kind_of(parquet_column const& column);

/// Whether values may be whole numbers that do not fit 64 bits with a sign.
bool may_be_too_large(parquet_column const& column);

/// A value of a column of integers, or of whole numbers; nothing where it does not fit.
std::optional<std::int64_t> integer_at(parquet_column const& column, parquet_values const& values,
                                       std::size_t i);

/// A value of a column of integers or floats.
double number_at(parquet_column const& column, parquet_values const& values, std::size_t i);

/// A value as a text, which may stand in `scratch`. Numbers are as short as they can be and still read as the
/// same ones.
std::string_view text_at(parquet_column const& column, parquet_values const& values, std::size_t i,
                         std::string& scratch);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/parquet_value.ipp"
#endif
