// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/error.hpp"

namespace edl::http {

/// The server could not be reached, or the connection broke; the request may have been executed.
class unreachable : public error {
 public:
  using error::error;
};

/// The wrong server answers, or the certificates cannot be used: do not retry.
class untrusted : public error {
 public:
  using error::error;
};

/// The caller stopped it (`limit::stopped`).
class stopped_error : public error {
 public:
  using error::error;
};

}  // namespace edl::http
