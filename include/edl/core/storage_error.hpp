// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <chrono>
#include <string>

#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/log.hpp"

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

/// Does what the file system may refuse for a while, again and again, for a minute at most; then the error is
/// thrown. `rest(duration)` waits between two tries, and says whether to go on; false: it said no.
template <class Work, class Rest>
bool when_storage_allows(Work const& work, Rest const& rest, logger const& log) {
  constexpr std::chrono::seconds timeout{60}, pause{1};
  for (auto const until = clock::now() + timeout;;) try {
      work();
      return true;
    } catch (storage_error const& e) {
      if (!e.may_pass() || clock::now() > until) throw;
      log.warning(std::string(e.what()) + "; it is tried again for a minute");
      if (!rest(pause)) return false;
    }
}

}  // namespace edl
