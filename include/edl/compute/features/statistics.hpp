// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace edl::features {

/// A column's name in a form that a shell accepts in the name of a variable: everything but letters, digits
/// and `_` becomes `_`.
std::string variable_name(std::string_view column);

/// Statistics of a column, computed before the training by `edl data analyze` and passed in the environment.
/// Variables have ElasticDL's names: `_age_min`, `_age_max`, `_age_avg`, `_age_stddev`, `_age_boundaries`
/// ("20,30,40"), `_age_distinct_count`, `_age_vocab` (a file). A name that no shell accepts is also looked up
/// as `variable_name` gives it. Each function returns `otherwise` if its variable is not set. It throws
/// usage_error, which names the variable, for an invalid value. Read each once: `static float const mean =
/// statistics("age").mean(38.6f);`.
class statistics {
 public:
  using environment = std::function<char const*(char const* name)>;

  explicit statistics(std::string_view column);  ///< of this process' environment
  statistics(std::string_view column, environment from) : column_(column), from_(std::move(from)) {}

  float min(float otherwise) const { return number("min", otherwise); }
  float max(float otherwise) const { return number("max", otherwise); }
  float mean(float otherwise) const { return number("avg", otherwise); }
  float deviation(float otherwise) const { return number("stddev", otherwise); }

  /// Sorted, each once.
  std::vector<float> boundaries(std::vector<float> otherwise) const;

  std::int64_t distinct(std::int64_t otherwise) const;

  /// The path of a file for `loaded_lookup::from_file`.
  std::string vocabulary(std::string otherwise) const;

 private:
  char const* find(std::string_view what, std::string& name) const;
  float number(std::string_view what, float otherwise) const;

  std::string column_;
  environment from_;
};

}  // namespace edl::features

#ifdef EDL_HEADER_ONLY
#include "edl/compute/features/statistics.ipp"
#endif
