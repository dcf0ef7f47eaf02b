// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/compute/data/format/published_tables.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

EDL_INLINE csv_options census_options() {
  constexpr auto number = example::kind::integers, text = example::kind::strings;
  return {.columns = {{"age", number},
                      {"workclass", text},
                      {"fnlwgt", number},
                      {"education", text},
                      {"education_num", number},
                      {"marital_status", text},
                      {"occupation", text},
                      {"relationship", text},
                      {"race", text},
                      {"sex", text},
                      {"capital_gain", number},
                      {"capital_loss", number},
                      {"hours_per_week", number},
                      {"native_country", text},
                      {"label", text}},
          .blanks = " .",
          .comment = '|'};
}

EDL_INLINE csv_options criteo_options() {
  csv_options o{.delimiter = '\t'};
  o.columns.push_back({"label", example::kind::integers});
  for (int i = 1; i <= 13; ++i) o.columns.push_back({fmt::format("i{}", i), example::kind::integers});
  for (int i = 1; i <= 26; ++i) o.columns.push_back({fmt::format("c{}", i), example::kind::strings});
  return o;
}

}  // namespace edl::data
