// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <string>

#include "edl/core/error.hpp"

namespace edl {

/// The file system refused something. What may pass by itself is worth another try a little later.
class storage_error : public error {
 public:
  /// `code`: of errno.
  storage_error(int code, std::string const& text) : error(text), code_(code) {}

  int code() const { return code_; }

  /// False for what stays as it is until somebody changes it: a path that is not there, or is none.
  bool may_pass() const {
    switch (code_) {
      case ENOENT:
      case ENOTDIR:
      case EISDIR:
      case EEXIST:
      case ELOOP:
      case ENAMETOOLONG:
      case EINVAL:
      case EFBIG:
      case EBADF:
      case ENOSYS:
      case EOPNOTSUPP:
        return false;
      default:
        return true;
    }
  }

 private:
  int code_;
};

}  // namespace edl
