// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/relay.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/frame.hpp"
#include "edl/base/wire/method.hpp"

/// What neighbours, disks and networks do to a job, besides ending its processes.
namespace chaos {

/// Where a process listens, as the kernel has it.
struct listening_places {
  std::vector<std::string> names;  ///< of Unix sockets: a path, or '@' and an abstract name
  std::vector<sockaddr_in> ports;

  static listening_places of(pid_t pid) {
    std::string const proc = "/proc/" + std::to_string(pid);
    std::set<std::string> sockets;
    std::error_code gone;
    for (auto const& entry : std::filesystem::directory_iterator(proc + "/fd", gone)) {
      std::string const to = std::filesystem::read_symlink(entry.path(), gone).string();
      if (to.starts_with("socket:[")) sockets.insert(to.substr(8, to.size() - 9));
    }
    listening_places found;
    each_line(proc + "/net/unix", [&](std::vector<std::string> const& f) {
      if (f.size() >= 8 && f[3] == "00010000" && sockets.contains(f[6])) found.names.push_back(f[7]);
    });
    each_line(proc + "/net/tcp", [&](std::vector<std::string> const& f) {
      if (f.size() < 10 || f[3] != "0A" || !sockets.contains(f[9])) return;
      sockaddr_in a{};
      a.sin_family = AF_INET;
      a.sin_addr.s_addr = in_addr_t(std::stoul(f[1], nullptr, 16));
      a.sin_port = htons(std::uint16_t(std::stoul(f[1].substr(9), nullptr, 16)));
      found.ports.push_back(a);
    });
    return found;
  }

 private:
  template <class F>
  static void each_line(std::string const& path, F use) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::vector<std::string> fields;
      for (std::string one; words >> one;) fields.push_back(one);
      use(fields);
    }
  }
};

/// Takes the names and ports of a process that is about to be killed, and answers there in its place. It does
/// so as user `nobody` where this process may become that, without the job's token in any case.
class squatter {
 public:
  explicit squatter(pid_t of, std::uint64_t manner)
      : places_(listening_places::of(of)),
        manner_(manner),
        space_(::open(("/proc/" + std::to_string(of) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC)) {}
  squatter(squatter const&) = delete;
  ~squatter() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    if (space_ >= 0) ::close(space_);
  }

  /// The process has been killed: its names are free at any moment.
  void begin() {
    thread_ = std::thread([this] { run(); });
  }

 private:
  void run() {
    // Both change this thread alone.
    if (space_ >= 0) ::setns(space_, CLONE_NEWNET);
    if (::geteuid() == 0) ::syscall(SYS_setresuid, -1, 65534, -1);
    std::vector<int> taken(places_.names.size() + places_.ports.size(), -1);
    std::vector<int> open;
    while (!over_) {
      std::vector<pollfd> ready;
      for (std::size_t i = 0; i < taken.size(); ++i) {
        if (taken[i] < 0)
          taken[i] = i < places_.names.size() ? take_name(places_.names[i])
                                              : take_port(places_.ports[i - places_.names.size()]);
        if (taken[i] >= 0) ready.push_back({taken[i], POLLIN, 0});
      }
      ::poll(ready.data(), ready.size(), 2);
      for (pollfd const& p : ready)
        if (p.revents)
          if (int const peer = ::accept4(p.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); peer >= 0) {
            answer(peer);
            open.push_back(peer);
          }
    }
    for (int fd : taken)
      if (fd >= 0) ::close(fd);
    for (int fd : open) ::close(fd);
  }

  // A failure that would end the job if anybody believed it, garbage, or silence.
  void answer(int peer) const {
    std::string said;
    if (manner_ % 3 == 0) {
      edl::wire::Failure failure;
      failure.set_code(std::uint32_t(edl::net::status::invalid));
      failure.set_text("a neighbour says that the job is over");
      std::string const message = failure.SerializeAsString();
      auto const head = edl::wire::encode(
          {.kind = edl::wire::frame_kind::failure, .message_size = std::uint32_t(message.size())});
      said.assign(reinterpret_cast<char const*>(head.data()), head.size());
      said += message;
    } else if (manner_ % 3 == 1) {
      said.assign(4'000, '\x1b');
    }
    if (!said.empty()) ::send(peer, said.data(), said.size(), MSG_NOSIGNAL);
  }

  static int bound(int fd, void const* address, socklen_t size) {
    if (fd < 0) return -1;
    if (::bind(fd, static_cast<sockaddr const*>(address), size) == 0 && ::listen(fd, 100) == 0) return fd;
    ::close(fd);
    return -1;
  }
  static int take_name(std::string const& name) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    if (name.size() >= sizeof a.sun_path) return -1;
    std::memcpy(a.sun_path, name.data(), name.size());
    bool const abstract = name.starts_with('@');
    if (abstract) a.sun_path[0] = 0;
    return bound(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &a,
                 socklen_t(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1)));
  }
  static int take_port(sockaddr_in const& a) {
    int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return bound(fd, &a, sizeof a);
  }

  listening_places places_;
  std::uint64_t manner_;
  int space_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

/// A directory of which nothing can be read or written while this lives: a file stands in its place.
class failing_storage {
 public:
  explicit failing_storage(std::string directory)
      : directory_(std::move(directory)), other_(directory_ + ".away") {
    std::ofstream(other_) << "no directory\n";
    broken_ = exchange();
  }
  failing_storage(failing_storage const&) = delete;
  ~failing_storage() {
    if (broken_) exchange();
    std::error_code ignored;
    std::filesystem::remove(other_, ignored);
  }
  bool broken() const { return broken_; }

 private:
  bool exchange() const {
    static constexpr unsigned swap = 2;  // RENAME_EXCHANGE
    return ::syscall(SYS_renameat2, AT_FDCWD, directory_.c_str(), AT_FDCWD, other_.c_str(), swap) == 0;
  }

  std::string directory_, other_;
  bool broken_ = false;
};

/// A relay that loses a reply, or alters a record, when it is told to.
class saboteur {
 public:
  saboteur(asio::ip::tcp::endpoint const& master, bool plain)
      : relay_(plain ? job::relay(master, job::relay::loses([this](std::uint16_t m) { return loses(m); }))
                     : job::relay(master, job::relay::alters([this](auto piece) { return alters(piece); }))) {
  }

  std::string address() const { return relay_.address(); }

  /// What passes next is harmed: the reply to one method, or after a second to any; or a piece of bytes.
  /// False: nothing has passed. Throws std::runtime_error when the connection lives on for 15 s.
  bool harm(std::uint64_t choice) {
    using namespace std::chrono_literals;
    namespace method = edl::wire::method;
    static constexpr std::array methods{method::heartbeat, method::task,  method::report,
                                        method::version,   method::watch, method::enter};
    int const before = relay_.ended();
    auto const harmed = [&] { return relay_.spoiled() > before; };
    choice_ = choice, method_ = methods[choice % methods.size()], armed_ = true;
    if (!job::eventually(harmed, 1s)) method_ = 0;
    job::eventually(harmed, 1s);
    if (armed_.exchange(false)) return false;
    if (!job::eventually([&] { return relay_.ended() > before; }, 15s))
      throw std::runtime_error("a connection goes on with an altered record");
    return true;
  }

 private:
  bool loses(std::uint16_t m) { return (m == method_ || method_ == 0) && armed_.exchange(false); }
  bool alters(std::span<std::byte> piece) {
    if (!armed_.exchange(false)) return false;
    bool const record = piece.size() > 5 && piece[0] == std::byte{23};
    std::size_t const at = record && choice_ % 4 < 3 ? 3 + choice_ / 4 % 2 : choice_ / 8 % piece.size();
    piece[at] ^=
        std::byte(1 << choice_ / 64 % (at == 3 ? 6 : 8));  // a length above 16 KiB is refused at once
    return true;
  }

  std::atomic<std::uint64_t> choice_ = 0;
  std::atomic<std::uint16_t> method_ = 0;
  std::atomic<bool> armed_ = false;
  job::relay relay_;
};

/// A variable of a process' environment; empty: it has none.
inline std::string variable_of(pid_t pid, std::string const& name) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string one; std::getline(in, one, '\0');)
    if (one.starts_with(name + "=")) return one.substr(name.size() + 1);
  return {};
}

/// Changes one bit of a file, or cuts it off in its midst. False: there is none.
inline bool damage(std::string const& path, std::uint64_t choice) {
  std::error_code failed;
  auto const size = std::filesystem::file_size(path, failed);
  if (failed || size == 0) return false;
  std::uint64_t const at = choice / 4 % size;
  if (choice % 4 == 0) {
    std::filesystem::resize_file(path, at, failed);
    return !failed;
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(std::streamoff(at));
  char byte = char(file.get());
  byte = char(byte ^ (1 << choice / 4 % 7));
  file.seekp(std::streamoff(at));
  file.put(byte);
  return bool(file);
}

}  // namespace chaos
