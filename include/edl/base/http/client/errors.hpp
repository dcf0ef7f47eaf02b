// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/error.hpp"

namespace edl::http {

/// The server could not be reached, or broke off; the request may have been carried out.
class unreachable : public error {
 public:
  using error::error;
};

/// Somebody answers, but not who should, or the certificates at hand cannot be used: to ask again is no use.
class untrusted : public error {
 public:
  using error::error;
};

/// The caller wanted no more of it (`limit::stopped`).
class stopped_error : public error {
 public:
  using error::error;
};

}  // namespace edl::http
