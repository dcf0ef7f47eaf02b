// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <chrono>
#include <string>

#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/log.hpp"

namespace edl {

/// An error of the file system. A transient one is worth another try a little later.
class storage_error : public error {
 public:
  /// `code`: the errno.
  storage_error(int code, std::string const& text) : error(text), code_(code) {}

  int code() const { return code_; }

  /// False for an error that lasts until somebody removes its cause, as a path that does not exist.
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

/// Repeats `work` while it throws a transient error, for a minute at most, and then throws that error; throws
/// any other error at once. `rest(duration)` waits between two tries and returns whether to continue. Returns
/// false if `rest` did.
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
