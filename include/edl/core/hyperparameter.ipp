// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

#include "edl/core/error.hpp"
#include "edl/core/hyperparameter.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE float setting::resolve(hyperparameter_view of, std::string_view option, float least,
                                  float below) const {
  if (constant()) return value_;
  if (of.type != type_)
    throw error(fmt::format("{} is set by a hyperparameter of a model other than the running one", option));
  float const value = read_(of.values);
  if (within(value, least, below)) return value;
  std::string const wanted = least == -unbounded  ? "a finite number"
                             : below == unbounded ? fmt::format("at least {}", least)
                                                  : fmt::format("at least {} and less than {}", least, below);
  throw usage_error(fmt::format("--set: {} is {}: expected {}", option, value, wanted));
}

}  // namespace edl
