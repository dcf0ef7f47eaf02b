// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace chaos {

/// A process that no other is taken for once it has ended.
class handle {
 public:
  explicit handle(pid_t pid) : fd_(int(::syscall(SYS_pidfd_open, pid, 0))) {}
  handle(handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool send(int signal) const {
    return fd_ >= 0 && ::syscall(SYS_pidfd_send_signal, fd_, signal, nullptr, 0) == 0;
  }

 private:
  int fd_;
};

}  // namespace chaos
