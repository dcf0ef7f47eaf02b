// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/security/handshake.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/net/peers.hpp"

namespace handshake_test {

using namespace peers;

namespace {

std::size_t open_descriptors() {
  std::size_t n = 0;
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) n += entry.exists() || true;
  return n;
}

/// A log in a file of its own, and what a process writes to its standard error meanwhile.
struct captured {
  captured() {
    fd = ::memfd_create("log", MFD_CLOEXEC);
    saved = ::dup(2);
    ::dup2(fd, 2);
  }
  ~captured() { restore(); }
  void restore() {
    if (saved >= 0) ::dup2(saved, 2), ::close(saved);
    saved = -1;
  }
  std::string text() {
    std::ostringstream all;
    all << std::ifstream("/proc/self/fd/" + std::to_string(fd)).rdbuf();
    return all.str();
  }
  int fd, saved;
};

sockaddr_un abstract(std::string const& name, socklen_t& size) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  std::memcpy(a.sun_path + 1, name.data(), name.size());
  size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return a;
}

/// A connection that says nothing, or -1.
int stranger(address const& to) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(to.port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 ? fd : -1;
}

/// Runs `work` as another user of this machine; false where this process may not become one. `work` writes to
/// a descriptor what it has seen, and ends when another is closed.
struct neighbour {
  template <class Work>
  explicit neighbour(Work work) {
    if (::geteuid() != 0) return;
    REQUIRE(::pipe(said) == 0);
    REQUIRE(::pipe(go) == 0);
    pid = ::fork();
    if (pid == 0) {
      ::close(go[1]);
      if (::setuid(65534) != 0) ::_exit(1);
      work(said[1], go[0]);
      ::_exit(0);
    }
    ::close(said[1]);
    ::close(go[0]);
  }
  ~neighbour() {
    if (pid <= 0) return;
    ::close(go[1]);
    ::waitpid(pid, nullptr, 0);
    ::close(said[0]);
  }
  char hear() {
    char c = 0;
    return ::read(said[0], &c, 1) == 1 ? c : '-';
  }
  pid_t pid = -1;
  int said[2], go[2];
};

}  // namespace

TEST_CASE("another user of the machine is not let in at a Unix socket, whatever it knows") {
  server s({}, {any_name()});
  auto const name = s.where().host;
  neighbour other([&](int say, int) {
    socklen_t size = 0;
    auto const to = abstract(name, size);
    int const fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    char heard = 'c';
    if (::connect(fd, reinterpret_cast<sockaddr const*>(&to), size) == 0 && ::read(fd, &heard, 1) == 0)
      heard = 'x';  // closed before a word was said
    [[maybe_unused]] auto const n = ::write(say, &heard, 1);
  });
  if (other.pid < 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  CHECK(other.hear() == 'x');
  while (s.listener.rejected() != 1) std::this_thread::yield();
  CHECK(s.listener.accepted() == 0);
}

TEST_CASE("a name that another user has taken is passed over, and the next address is dialled") {
  auto const name = any_name();
  neighbour squatter([&](int say, int go) {
    socklen_t size = 0;
    auto const at = abstract(name.host, size);
    int const fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::bind(fd, reinterpret_cast<sockaddr const*>(&at), size) != 0 || ::listen(fd, 8) != 0) ::_exit(1);
    char c = 'l';
    [[maybe_unused]] auto n = ::write(say, &c, 1);
    n = ::read(go, &c, 1);
  });
  if (squatter.pid < 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  REQUIRE(squatter.hear() == 'l');
  server s(secured({"ps-0", 2}));
  client c(secured(), {name, s.where()});
  CHECK(c.echo("by the other way") == "by the other way");
  client nowhere(secured(), {name});
  auto const o = outcome_of([&] { nowhere.call({.method = echo, .timeout = 5s}); });
  CHECK(o.code == status::unavailable);
  CHECK(o.text.find("a process of user 65534") != std::string::npos);
}

TEST_CASE("a socket in a directory of one's own replaces what a killed predecessor has left there") {
  char place[] = "/tmp/edl-test-XXXXXX";
  REQUIRE(::mkdtemp(place));
  auto const where = edl::net::parse_address("unix:" + std::string(place) + "/master");
  {
    // Nobody removes the file of a process that was killed.
    int const fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strcpy(at.sun_path, where.host.c_str());
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr const*>(&at), sizeof at) == 0);
    ::close(fd);
  }
  {
    server s({}, {where});
    client c(where);
    CHECK(c.echo("here") == "here");
  }
  std::filesystem::remove_all(place);
}

TEST_CASE("an address that cannot be listened on may be done without, if another can") {
  server taken;
  edl::net::node n(options());
  CHECK_THROWS_AS(edl::net::listener(n, {taken.where(), any_name()}, {}), edl::error);
  edl::net::listener some(n, {taken.where(), any_name()}, {}, {.some_suffice = true});
  CHECK(some.addresses().size() == 1);
  CHECK_THROWS_AS(edl::net::listener(n, {taken.where()}, {}, {.some_suffice = true}), edl::error);
}

TEST_CASE("strangers that say nothing hold few descriptors, and keep no member out") {
  server s({.strangers = 16, .handshake = 1h});
  client early(s.where());
  CHECK(early.echo("before") == "before");
  std::size_t const before = open_descriptors();
  std::vector<int> held;
  for (int i = 0; i < 300; ++i) held.push_back(stranger(s.where()));
  client late(s.where());
  CHECK(late.echo("after") == "after");
  std::size_t const after = open_descriptors();
  for (int fd : held) ::close(fd);
  CHECK(after <= before + held.size() + 16 + 16);
}

TEST_CASE("a process that may open few files serves its members beside a flood of strangers") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  std::size_t const used = open_descriptors();
  rlimit few = before;
  few.rlim_cur = used + 200;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  server limited({.strangers = 100'000, .handshake = 1h});
  // The strangers live in another process, so that their ends are not of the limit.
  address const where = limited.where();
  int ready[2], go[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(go) == 0);
  pid_t const child = ::fork();
  if (child == 0) {
    ::close(go[1]);
    rlimit many{before.rlim_max, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &many);
    for (int i = 0; i < 1000 && stranger(where) >= 0; ++i) {
    }
    char c = 'r';
    [[maybe_unused]] auto n = ::write(ready[1], &c, 1);
    n = ::read(go[0], &c, 1);
    ::_exit(0);
  }
  char c = 0;
  REQUIRE(::read(ready[0], &c, 1) == 1);
  client member(where);
  CHECK(member.call({.method = echo, .message = "in", .timeout = 60s, .idempotent = true}).message == "in");
  for (int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
  ::waitpid(child, nullptr, 0);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("garbage of strangers writes few lines, and no control characters") {
  captured log;
  {
    auto o = options();
    o.log = edl::logger(edl::severity::info, "", log.fd);
    server s(std::move(o));
    for (int i = 0; i < 300; ++i) {
      raw peer(s.where());
      edl::wire::Hello hello;
      hello.set_nonce(std::string(32, 'n'));
      hello.set_job("\xff\xfe\x1b[2J\nforged line" + std::string(700, char(0x80 + i % 64)));
      peer.send_frame({.kind = edl::wire::frame_kind::hello}, hello.SerializeAsString());
      peer.closed_by_peer();
    }
    while (s.listener.rejected() < 300) std::this_thread::yield();
  }
  log.restore();
  std::string const text = log.text();
  CHECK(text.size() > 0);
  CHECK(text.size() < 64'000);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\nforged") == std::string::npos);
  CHECK(text.find("libprotobuf") == std::string::npos);
}

}  // namespace handshake_test
