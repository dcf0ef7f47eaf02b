// SPDX-License-Identifier: Apache-2.0
// What the simulated network does to connections.
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "world/test/harness.hpp"

namespace {

using namespace harness;

int connected_to(char const* name) {
  addrinfo* found = nullptr;
  if (::getaddrinfo(name, "99", nullptr, &found) != 0) return -EHOSTUNREACH;
  int const fd = ::socket(AF_INET, SOCK_STREAM, 0);
  int const code = ::connect(fd, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  ::freeaddrinfo(found);
  return code == 0 ? fd : (::close(fd), -code);
}

void keep_alive(int fd) {
  int const yes = 1, idle = 10, every = 5, count = 4, longest = 30'000;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &longest, sizeof longest);
}

/// Answers each byte with the next one.
int echo_main(int, char**) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(99);
  int const door = ::socket(AF_INET, SOCK_STREAM, 0);
  ::bind(door, reinterpret_cast<sockaddr*>(&at), sizeof at);
  ::listen(door, 16);
  for (;;) {
    int const fd = ::accept(door, nullptr, nullptr);
    std::thread([fd] {
      for (char c; ::recv(fd, &c, 1, 0) == 1;) {
        ++c;
        ::send(fd, &c, 1, MSG_NOSIGNAL);
      }
      ::close(fd);
    }).detach();
  }
}

world::pid echo() {
  auto const p = world::start({.name = "echo", .main = echo_main});
  std::this_thread::sleep_for(1ms);
  return p;
}

char const* ask(int fd) {
  char c = 'a';
  if (::send(fd, &c, 1, MSG_NOSIGNAL) != 1) return ::strerrorname_np(errno);
  ssize_t const n = ::recv(fd, &c, 1, 0);
  return n == 1 ? c == 'b' ? "answer" : "other answer" : n == 0 ? "end" : ::strerrorname_np(errno);
}

long long seconds() { return std::chrono::floor<std::chrono::seconds>(world::now()).count(); }

}  // namespace

TEST_CASE("bytes travel between hosts for as long as the link says; nobody answers at a closed port") {
  auto const o = history([](notes note) {
    echo();
    int const fd = connected_to("echo");
    note("{}", ask(fd));
    world::set_default_link({.latency = 1s, .jitter = 0s});
    auto const before = world::now();
    note("{}", ask(fd));
    note("{} s", (world::now() - before) / 1s);
    note("{}", connected_to("echo") > 0);
    note("{} {}", connected_to("nobody") == -EHOSTUNREACH, [] {
      world::set_dns("else", "world");
      return connected_to("else") == -ECONNREFUSED;
    }());
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"answer", "answer", "2 s", "true", "true true"}));
}

TEST_CASE("what is sent over a cut link comes when it is healed, within the connection's patience") {
  auto const o = history([](notes note) {
    echo();
    int const fd = connected_to("echo");
    keep_alive(fd);
    note("{}", ask(fd));
    world::cut("world", "echo");
    world::at(world::now() + 20s, [] { world::heal("world", "echo"); });
    note("{}", ask(fd));
    auto const healed = seconds();
    note("{}", healed >= 20 && healed < 42);  // pauses between two tries double
    world::cut("world", "echo");
    note("{}", ask(fd));
    note("{}", seconds() - healed >= 29 && seconds() - healed <= 31);
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"answer", "answer", "true", "ETIMEDOUT", "true"}));
}

TEST_CASE("the end of a process ends its connections, and that of its machine is noticed late") {
  auto const o = history([](notes note) {
    auto const first = echo();
    int fd = connected_to("echo");
    note("{}", ask(fd));
    world::kill(first, SIGKILL);
    char c;
    note("{} {}", ::recv(fd, &c, 1, 0), seconds());
    note("{}", connected_to("echo") == -ECONNREFUSED);
    echo();
    fd = connected_to("echo");
    keep_alive(fd);
    note("{}", ask(fd));
    world::power_off("echo");
    note("{}", result(::recv(fd, &c, 1, 0)));
    note("{} s", seconds());
    world::boot("echo");
    echo();
    fd = connected_to("echo");
    note("{}", ask(fd));
    world::power_off("echo");
    world::boot("echo");
    note("{}", ask(fd));  // the machine is there, and does not know the connection
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) ==
        text({"answer", "0 0", "true", "answer", "ETIMEDOUT", "30 s", "answer", "ECONNRESET"}));
}

TEST_CASE("connections are reset, or forgotten on their way") {
  auto const o = history([](notes note) {
    echo();
    int fd = connected_to("echo");
    note("{}", ask(fd));
    world::reset_connections("echo", "world");
    note("{}", ask(fd));
    fd = connected_to("echo");
    keep_alive(fd);
    note("{}", ask(fd));
    world::strand_connections("echo", "world");
    note("{}", ask(fd));
    note("{} s", seconds());
    note("{}", ask(connected_to("echo")));
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"answer", "ECONNRESET", "answer", "ETIMEDOUT", "30 s", "answer"}));
}

TEST_CASE("one answer is lost, and its connection lives; an end comes late to the other side") {
  auto const o = history([](notes note) {
    echo();
    int fd = connected_to("echo");
    note("{}", ask(fd));
    world::swallow("echo", "world", 1);
    ::send(fd, "a", 1, MSG_NOSIGNAL);
    std::this_thread::sleep_for(1s);
    char c = 0;
    note("{}", ::recv(fd, &c, 1, MSG_DONTWAIT));
    note("{}", ask(fd));
    world::end_late("world", "echo", 2s);
    note("{}", ask(fd));
    note("{}", ask(connected_to("echo")));
    std::this_thread::sleep_for(1s);
    std::size_t const before = world::connections();
    std::this_thread::sleep_for(2s);
    note("{}", before - world::connections());
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"answer", "-1", "answer", "ECONNRESET", "answer", "0"}));
}

TEST_CASE("who does not read holds up who sends") {
  auto const o = history([](notes note) {
    int ends[2];
    ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    std::string const much(3u << 20, 'x');
    std::thread reader([&] {
      std::this_thread::sleep_for(10s);
      std::size_t all = 0;
      char part[65536];
      for (ssize_t n; (n = ::recv(ends[1], part, sizeof part, 0)) > 0;) all += std::size_t(n);
      note("{}", all);
    });
    std::size_t sent = 0;
    while (sent < much.size())
      sent += std::size_t(::send(ends[0], much.data() + sent, much.size() - sent, 0));
    note("{}", seconds());
    ::close(ends[0]);
    reader.join();
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"10", "3145728"}));
}
