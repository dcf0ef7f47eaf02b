// SPDX-License-Identifier: Apache-2.0
// Sockets and names of hosts.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "world/kernel/network.hpp"
#include "world/libc/result.hpp"

using namespace world;

namespace {

bool ours(int fd) { return self && is_simulated(fd); }

bool read_address(sockaddr const* from, socklen_t size, endpoint& into) {
  if (from->sa_family == AF_UNIX) {
    auto const& u = *reinterpret_cast<sockaddr_un const*>(from);
    std::size_t const n = size - offsetof(sockaddr_un, sun_path);
    into.path = n > 0 && u.sun_path[0] == 0 ? std::string(u.sun_path, n)
                                            : std::string(u.sun_path, ::strnlen(u.sun_path, n));
    return !into.path.empty();
  }
  if (from->sa_family != AF_INET) return false;
  auto const& i = *reinterpret_cast<sockaddr_in const*>(from);
  into.address = ntohl(i.sin_addr.s_addr);
  into.port = ntohs(i.sin_port);
  return true;
}

void write_address(int domain, endpoint const& from, sockaddr* into, socklen_t* size) {
  if (!into) return;
  if (domain == AF_UNIX) {
    sockaddr_un u{};
    u.sun_family = AF_UNIX;
    std::memcpy(u.sun_path, from.path.data(), std::min(from.path.size(), sizeof u.sun_path));
    socklen_t const all = socklen_t(offsetof(sockaddr_un, sun_path) + from.path.size() +
                                    (from.path.empty() || from.path[0] == 0 ? 0 : 1));
    std::memcpy(into, &u, std::min(*size, all));
    *size = all;
    return;
  }
  sockaddr_in i{};
  i.sin_family = AF_INET;
  i.sin_addr.s_addr = htonl(from.address);
  i.sin_port = htons(from.port);
  std::memcpy(into, &i, std::min<std::size_t>(*size, sizeof i));
  *size = sizeof i;
}

int make_pair_or_one(int domain, int type) {
  if (domain != AF_INET && domain != AF_UNIX) return int(result_of(-EAFNOSUPPORT));
  if ((type & 0xf) != SOCK_STREAM) return int(result_of(-EPROTONOSUPPORT));
  auto const s = make_socket(domain);
  s->nonblocking = type & SOCK_NONBLOCK;
  return add_descriptor(s);
}

bool dont_wait(int flags) { return flags & MSG_DONTWAIT; }

}  // namespace

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  static auto* const real = next<int(int, int, int)>("socket");
  return self ? make_pair_or_one(domain, type) : real(domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int into[2]) noexcept {
  static auto* const real = next<int(int, int, int, int*)>("socketpair");
  if (!self) return real(domain, type, protocol, into);
  std::shared_ptr<world::socket> a, b;
  socket_pair(a, b);
  a->nonblocking = b->nonblocking = type & SOCK_NONBLOCK;
  into[0] = add_descriptor(a);
  into[1] = add_descriptor(b);
  return 0;
}

int bind(int fd, sockaddr const* to, socklen_t size) noexcept {
  static auto* const real = next<int(int, sockaddr const*, socklen_t)>("bind");
  if (!ours(fd)) return real(fd, to, size);
  auto const s = descriptor_of<world::socket>(fd);
  endpoint where;
  if (!s || !read_address(to, size, where)) return int(result_of(s ? -EAFNOSUPPORT : -ENOTSOCK));
  return int(result_of(s->bind(std::move(where), true)));
}

int listen(int fd, int most) noexcept {
  static auto* const real = next<int(int, int)>("listen");
  if (!ours(fd)) return real(fd, most);
  auto const s = descriptor_of<world::socket>(fd);
  return int(result_of(s ? s->listen(most) : -ENOTSOCK));
}

int accept4(int fd, sockaddr* from, socklen_t* size, int flags) {
  static auto* const real = next<int(int, sockaddr*, socklen_t*, int)>("accept4");
  if (!ours(fd)) return real(fd, from, size, flags);
  auto const l = descriptor_of<world::socket>(fd);
  if (!l) return int(result_of(-ENOTSOCK));
  long const code = l->until_ready(true, never, [&]() -> long {
    if (l->is != world::socket::state::listening) return -EINVAL;
    return l->queue.empty() ? -EAGAIN : 0;
  });
  if (code < 0) return int(result_of(code));
  auto const s = l->queue.front();
  l->queue.pop_front();
  s->nonblocking = flags & SOCK_NONBLOCK;
  write_address(s->domain, s->remote, from, size);
  os->note("accept", std::uint64_t(s->owner), s->local.port);
  return add_descriptor(s);
}

int accept(int fd, sockaddr* from, socklen_t* size) { return accept4(fd, from, size, 0); }

int connect(int fd, sockaddr const* to, socklen_t size) {
  static auto* const real = next<int(int, sockaddr const*, socklen_t)>("connect");
  if (!ours(fd)) return real(fd, to, size);
  auto const s = descriptor_of<world::socket>(fd);
  endpoint where;
  if (!s || !read_address(to, size, where)) return int(result_of(s ? -EAFNOSUPPORT : -ENOTSOCK));
  os->note("connect", std::uint64_t(s->owner) << 32 | where.address, where.port);
  long const code = s->begin_connect(std::move(where));
  if (code != -EINPROGRESS || s->nonblocking) return int(result_of(code));
  s->until_ready(true, never,
                 [&]() -> long { return s->is == world::socket::state::connecting ? -EAGAIN : 0; });
  return s->error ? int(result_of(-std::exchange(s->error, 0))) : 0;
}

int shutdown(int fd, int how) noexcept {
  static auto* const real = next<int(int, int)>("shutdown");
  if (!ours(fd)) return real(fd, how);
  auto const s = descriptor_of<world::socket>(fd);
  return int(result_of(s ? s->shut(how) : -ENOTSOCK));
}

ssize_t sendmsg(int fd, msghdr const* m, int flags) {
  static auto* const real = next<ssize_t(int, msghdr const*, int)>("sendmsg");
  if (!ours(fd)) return real(fd, m, flags);
  world::socket::together with;
  for (cmsghdr* c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(const_cast<msghdr*>(m), c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    auto const* const fds = reinterpret_cast<int const*>(CMSG_DATA(c));
    for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      auto o = descriptor(fds[i]);
      if (!o) return result_of(-EBADF);
      ++o->descriptors;  // on its way
      with.push_back(std::move(o));
    }
  }
  long const n = transfer(fd, direction::out, !dont_wait(flags), [&](object& o) -> long {
    auto* const s = dynamic_cast<world::socket*>(&o);
    return s ? s->send({m->msg_iov, m->msg_iovlen}, flags, with) : -ENOTSOCK;
  });
  return broken_pipe(n, flags & MSG_NOSIGNAL);
}

ssize_t recvmsg(int fd, msghdr* m, int flags) {
  static auto* const real = next<ssize_t(int, msghdr*, int)>("recvmsg");
  if (!ours(fd)) return real(fd, m, flags);
  world::socket::together with;
  long const n = transfer(fd, direction::in, !dont_wait(flags), [&](object& o) -> long {
    auto* const s = dynamic_cast<world::socket*>(&o);
    return s ? s->receive({m->msg_iov, m->msg_iovlen}, flags, &with) : -ENOTSOCK;
  });
  m->msg_flags = 0;
  m->msg_namelen = 0;
  std::size_t const room =
      m->msg_controllen >= CMSG_LEN(0) ? (m->msg_controllen - CMSG_LEN(0)) / sizeof(int) : 0;
  if (with.size() > room) m->msg_flags |= MSG_CTRUNC;
  std::size_t const taken = std::min(room, with.size());
  if (taken > 0) {
    cmsghdr* const c = CMSG_FIRSTHDR(m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(taken * sizeof(int));
    for (std::size_t i = 0; i < taken; ++i) {
      int const one = add_descriptor(with[i]);
      --with[i]->descriptors;
      std::memcpy(CMSG_DATA(c) + i * sizeof(int), &one, sizeof one);
    }
    m->msg_controllen = CMSG_SPACE(taken * sizeof(int));
  } else {
    m->msg_controllen = 0;
  }
  return n;
}

ssize_t sendto(int fd, void const* from, size_t size, int flags, sockaddr const* to, socklen_t to_size) {
  static auto* const real =
      next<ssize_t(int, void const*, size_t, int, sockaddr const*, socklen_t)>("sendto");
  if (!ours(fd)) return real(fd, from, size, flags, to, to_size);
  iovec one{const_cast<void*>(from), size};
  msghdr m{};
  m.msg_iov = &one;
  m.msg_iovlen = 1;
  return sendmsg(fd, &m, flags);
}

ssize_t send(int fd, void const* from, size_t size, int flags) {
  static auto* const real = next<ssize_t(int, void const*, size_t, int)>("send");
  return ours(fd) ? sendto(fd, from, size, flags, nullptr, 0) : real(fd, from, size, flags);
}

ssize_t recvfrom(int fd, void* into, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  static auto* const real = next<ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*)>("recvfrom");
  if (!ours(fd)) return real(fd, into, size, flags, from, from_size);
  iovec one{into, size};
  msghdr m{};
  m.msg_iov = &one;
  m.msg_iovlen = 1;
  if (from_size) *from_size = 0;
  return recvmsg(fd, &m, flags);
}

ssize_t recv(int fd, void* into, size_t size, int flags) {
  static auto* const real = next<ssize_t(int, void*, size_t, int)>("recv");
  return ours(fd) ? recvfrom(fd, into, size, flags, nullptr, nullptr) : real(fd, into, size, flags);
}

int getsockname(int fd, sockaddr* into, socklen_t* size) noexcept {
  static auto* const real = next<int(int, sockaddr*, socklen_t*)>("getsockname");
  if (!ours(fd)) return real(fd, into, size);
  auto const s = descriptor_of<world::socket>(fd);
  if (!s) return int(result_of(-ENOTSOCK));
  write_address(s->domain, s->local, into, size);
  return 0;
}

int getpeername(int fd, sockaddr* into, socklen_t* size) noexcept {
  static auto* const real = next<int(int, sockaddr*, socklen_t*)>("getpeername");
  if (!ours(fd)) return real(fd, into, size);
  auto const s = descriptor_of<world::socket>(fd);
  if (!s) return int(result_of(-ENOTSOCK));
  if (s->is != world::socket::state::connected) return int(result_of(-ENOTCONN));
  write_address(s->domain, s->remote, into, size);
  return 0;
}

int getsockopt(int fd, int level, int name, void* into, socklen_t* size) noexcept {
  static auto* const real = next<int(int, int, int, void*, socklen_t*)>("getsockopt");
  if (!ours(fd)) return real(fd, level, name, into, size);
  auto const s = descriptor_of<world::socket>(fd);
  if (!s) return int(result_of(-ENOTSOCK));
  if (level == SOL_SOCKET && name == SO_PEERCRED) {
    ucred const who{s->peer_process, 1000, 1000};
    std::memcpy(into, &who, std::min<std::size_t>(*size, sizeof who));
    *size = sizeof who;
    return 0;
  }
  int value = 0;
  if (level == SOL_SOCKET && name == SO_ERROR) value = std::exchange(s->error, 0);
  if (level == SOL_SOCKET && name == SO_TYPE) value = SOCK_STREAM;
  if (level == SOL_SOCKET && name == SO_DOMAIN) value = s->domain;
  if (level == SOL_SOCKET && name == SO_ACCEPTCONN) value = s->is == world::socket::state::listening;
  if (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF)) value = int(s->limit);
  std::memcpy(into, &value, std::min<std::size_t>(*size, sizeof value));
  *size = sizeof value;
  return 0;
}

int setsockopt(int fd, int level, int name, void const* from, socklen_t size) noexcept {
  static auto* const real = next<int(int, int, int, void const*, socklen_t)>("setsockopt");
  if (!ours(fd)) return real(fd, level, name, from, size);
  auto const s = descriptor_of<world::socket>(fd);
  if (!s) return int(result_of(-ENOTSOCK));
  int value = 0;
  std::memcpy(&value, from, std::min<std::size_t>(size, sizeof value));
  if (level == SOL_SOCKET && name == SO_KEEPALIVE) s->keepalive = value != 0;
  if (level == SOL_SOCKET && name == SO_SNDBUF) s->limit = std::size_t(std::max(value, 4096)) * 2;
  if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO) && size == sizeof(timeval)) {
    auto const& t = *static_cast<timeval const*>(from);
    (name == SO_RCVTIMEO ? s->read_timeout : s->write_timeout) = t.tv_sec * 1'000'000'000 + t.tv_usec * 1000;
  }
  if (level == SOL_SOCKET && name == SO_LINGER && size == sizeof(linger)) {
    auto const& l = *static_cast<linger const*>(from);
    s->linger_reset = l.l_onoff && l.l_linger == 0;
  }
  if (level == IPPROTO_TCP && s->domain == AF_INET) {
    if (name == TCP_KEEPIDLE) s->keepalive_idle = value;
    if (name == TCP_KEEPINTVL) s->keepalive_interval = value;
    if (name == TCP_KEEPCNT) s->keepalive_count = value;
    if (name == TCP_USER_TIMEOUT) s->user_timeout = value ? std::int64_t(value) * 1'000'000 : 924'000'000'000;
  }
  return 0;
}

// ---- Names ----

int getaddrinfo(char const* name, char const* service, addrinfo const* hints, addrinfo** into) {
  static auto* const real = next<int(char const*, char const*, addrinfo const*, addrinfo**)>("getaddrinfo");
  if (!self) return real(name, service, hints, into);
  in_addr number{};
  std::uint32_t address = hints && hints->ai_flags & AI_PASSIVE ? 0 : 0x7f000001u;
  if (name && ::inet_pton(AF_INET, name, &number) == 1) {
    address = ntohl(number.s_addr);
  } else if (name && std::string_view(name) == "localhost") {
    address = 0x7f000001u;
  } else if (name) {
    if (hints && hints->ai_flags & AI_NUMERICHOST) return EAI_NONAME;
    os->sleep_until(os->now + 200'000 + std::int64_t(os->network.exponential(300'000)));
    host const* const h = resolve_name(name);
    if (!h) return EAI_NONAME;
    address = h->address;
  }
  if (hints && hints->ai_family == AF_INET6) return EAI_NONAME;
  struct answer {
    addrinfo info;
    sockaddr_in where;
  };
  auto* const a = static_cast<answer*>(std::calloc(1, sizeof(answer)));
  a->where.sin_family = AF_INET;
  a->where.sin_addr.s_addr = htonl(address);
  a->where.sin_port = htons(std::uint16_t(service ? std::atoi(service) : 0));
  a->info = {.ai_flags = 0,
             .ai_family = AF_INET,
             .ai_socktype = SOCK_STREAM,
             .ai_protocol = IPPROTO_TCP,
             .ai_addrlen = sizeof a->where,
             .ai_addr = reinterpret_cast<sockaddr*>(&a->where),
             .ai_canonname = nullptr,
             .ai_next = nullptr};
  *into = &a->info;
  return 0;
}

void freeaddrinfo(addrinfo* of) noexcept {
  static auto* const real = next<void(addrinfo*)>("freeaddrinfo");
  self ? std::free(of) : real(of);
}

int gethostname(char* into, size_t size) noexcept {
  static auto* const real = next<int(char*, size_t)>("gethostname");
  if (!self) return real(into, size);
  std::string const& name = self->of->at->name;
  if (name.size() >= size) return int(result_of(-ENAMETOOLONG));
  std::memcpy(into, name.c_str(), name.size() + 1);
  return 0;
}

int uname(utsname* into) noexcept {
  static auto* const real = next<int(utsname*)>("uname");
  if (!self) return real(into);
  *into = {};
  std::strcpy(into->sysname, "Linux");
  std::strcpy(into->release, "6.1.0");
  std::strcpy(into->machine, "x86_64");
  std::strncpy(into->nodename, self->of->at->name.c_str(), sizeof into->nodename - 1);
  return 0;
}

}  // extern "C"
