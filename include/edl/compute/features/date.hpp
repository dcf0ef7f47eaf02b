// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "edl/core/text.hpp"

namespace edl::features {

/// A day of the Gregorian calendar, and a time of that day, as numbers for a network:
///
///     features::date const sold(record.bytes("sold"));
///     numbers(0) = age(float(sold.days()));
///     ids(0) = float(sold.weekday());
///
/// Reads `2026-11-28` and `2026/11/28`, and `28.11.2026`. A time may follow after a blank or a `T`: `15:04`,
/// `15:04:05`, `15:04:05.678`, and a zone, `Z` or `+01:00` (ISO 8601). The time is used as written; a zone is
/// ignored. `11/28/2026` is refused, because `11/12/2026` is ambiguous. Ignores surrounding blanks.
class date {
 public:
  /// Throws data_error, which shows the text, for any other text.
  explicit date(std::string_view text);

  /// The same without the error.
  static std::optional<date> from(std::string_view text);

  /// Whether a text means a missing date: it is blank, or NA, N/A, n/a, null, NULL, None, ? or -.
  static bool missing(std::string_view text) {
    text = trimmed(text);
    return text.empty() || says_missing(text);
  }

  int year() const { return year_; }
  int month() const { return month_; }  ///< 1 to 12
  int day() const { return day_; }      ///< of the month, 1 to 31
  int weekday() const;                  ///< 0 (Monday) to 6
  int hour() const { return second_ / 3600; }
  /// Since 1970-01-01, the time as a fraction.
  double days() const;

 private:
  date() = default;

  int year_ = 1970, month_ = 1, day_ = 1, second_ = 0;  // second of the day
};

}  // namespace edl::features

#ifdef EDL_HEADER_ONLY
#include "edl/compute/features/date.ipp"
#endif
