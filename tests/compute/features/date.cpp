// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/date.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"

namespace date_test {

using edl::features::date;

TEST_CASE("a date is a day of the week, of a month and since 1970, and its time a fraction") {
  date const d("2026-11-28");
  CHECK(d.year() == 2026);
  CHECK(d.month() == 11);
  CHECK(d.day() == 28);
  CHECK(d.weekday() == 5);
  CHECK(d.days() == 20785);
  for (char const* const same : {" 2026/11/28 ", "28.11.2026"}) CHECK(date(same).days() == d.days());
  CHECK(date("1970-01-01").days() == 0);
  CHECK(date("1970-01-01").weekday() == 3);
  CHECK(date("1969-12-31").days() == -1);
  CHECK(date("2024-02-29 18:00").days() == date("2024-02-28").days() + 1.75);
  for (char const* const text :
       {"2024-02-29T18:30:15Z", "2024-02-29 18:30:15.25+01:00", "29.02.2024 18:30:60"})
    CHECK(date(text).hour() == 18);
}

TEST_CASE("blanks and the usual words say that there is no date") {
  for (char const* const none : {"", " ", "NA", " N/A ", "null", "-"}) CHECK(date::missing(none));
  for (char const* const some : {"2026-11-28", "nA", "0", "yesterday"}) CHECK_FALSE(date::missing(some));
}

TEST_CASE("what is no date, or may be two, is none") {
  for (char const* const text :
       {"", "2026", "2026-11", "2026-13-01", "2026-02-29", "2026-00-10", "2026-11-28x", "2026-11-28T",
        "2026-11/28", "2026-11-28 24:00", "2026-11-28 12:60", "2026-11-28 12", "2026-11-28 12:30:",
        "2026-11-28 12:30 +1", "11/28/2026", "1.2.2026", "28.11.26", "+026-11-28", "2026-11-28 12:30:15."})
    CHECK_MESSAGE(!date::from(text), text);
  CHECK_THROWS_WITH_AS(
      date("11/28/2026"),
      "'11/28/2026' is not a date: expected 2026-11-28 or 28.11.2026, optionally with a time, 15:04:05",
      edl::data_error);
}

}  // namespace date_test
