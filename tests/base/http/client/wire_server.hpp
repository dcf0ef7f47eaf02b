// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/http/client/certificates.hpp"

namespace test {

/// What a client has asked.
struct request {
  std::string method, target, head, body;

  std::string field(std::string const& name) const {
    auto const at = head.find("\r\n" + name + ": ");
    if (at == head.npos) return {};
    auto const begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

/// One connection of a client, to say to it what a test likes, byte for byte.
class wire {
 public:
  wire(int fd, SSL* tls, std::atomic<bool> const& stopped) : fd_(fd), tls_(tls), stopped_(stopped) {}

  void send(std::string_view bytes) {
    if (tls_)
      SSL_write(tls_, bytes.data(), int(bytes.size()));
    else
      (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void json(int code, std::string const& body, std::string const& fields = {}) {
    send("HTTP/1.1 " + std::to_string(code) + " Answer\r\nContent-Type: application/json\r\n" + fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  /// The head of a watch; then `piece`, and `last_piece` for a clean end.
  void begin() {
    send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  void piece(std::string_view bytes) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    send(size + std::string(bytes) + "\r\n");
  }
  void last_piece() { send("0\r\n\r\n"); }
  /// Says nothing more, as a process that was killed.
  void cut() {
    linger const now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    open_ = false;
  }
  /// Ends the connection after this answer.
  void close() { open_ = false; }
  bool open() const { return open_; }

  /// Waits until the client has gone or the server is stopped.
  void stall() {
    while (!stopped_ && alive()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    open_ = false;
  }
  bool alive() const {
    pollfd p{fd_, POLLRDHUP, 0};
    return ::poll(&p, 1, 0) == 0;
  }

  /// The common name of the client's certificate.
  std::string peer() const {
    auto* const x = SSL_get1_peer_certificate(tls_);
    char name[100] = "";
    if (x) X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof name);
    X509_free(x);
    return name;
  }

  std::size_t receive(char* into, std::size_t size) {
    auto const n = tls_ ? SSL_read(tls_, into, int(size)) : int(::recv(fd_, into, size, 0));
    return n > 0 ? std::size_t(n) : 0;
  }

 private:
  int fd_;
  SSL* tls_;
  std::atomic<bool> const& stopped_;
  bool open_ = true;
};

/// A server on a free port of 127.0.0.1 that hands every request to a function, each connection on a thread
/// of its own.
class wire_server {
 public:
  using handler = std::function<void(request const&, wire&)>;

  /// `who`: nullptr for http://. `clients`: the authority (PEM) that must have signed a client's certificate.
  /// `heads_only`: does not wait for a request's body.
  wire_server(identity const* who, handler h, identity const* clients = nullptr, std::uint16_t port = 0,
              bool heads_only = false)
      : handler_(std::move(h)), heads_only_(heads_only) {
    if (who) {
      context_ = SSL_CTX_new(TLS_server_method());
      SSL_CTX_use_certificate(context_, who->signed_by_issuer.get());
      SSL_CTX_use_PrivateKey(context_, who->secret.get());
      if (clients) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), clients->signed_by_issuer.get());
        SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      }
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const yes = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(port);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&here), size) != 0 || ::listen(listener_, 64) != 0)
      throw std::runtime_error("cannot listen");
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size);
    port_ = ntohs(here.sin_port);
    acceptor_ = std::thread([this] { accept(); });
  }
  wire_server(wire_server const&) = delete;

  ~wire_server() {
    stopped_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    {
      std::lock_guard const lock(mutex_);
      for (int fd : sockets_) ::shutdown(fd, SHUT_RDWR);
    }
    for (auto& t : threads_) t.join();
    SSL_CTX_free(context_);
  }

  std::uint16_t port() const { return port_; }
  std::string url() const {
    return (context_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
  }
  int connections() const { return connections_; }
  int requests() const { return requests_; }

 private:
  void accept() {
    for (;;) {
      int const fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (stopped_ || fd < 0) {
        if (fd >= 0) ::close(fd);
        return;
      }
      ++connections_;
      int const yes = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      std::lock_guard const lock(mutex_);
      sockets_.push_back(fd);
      threads_.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    // For this thread alone: that the client under test raises none is seen by the process living on.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    SSL* const tls = context_ ? SSL_new(context_) : nullptr;
    if (tls) SSL_set_fd(tls, fd);
    if (!tls || SSL_accept(tls) == 1) {
      wire w(fd, tls, stopped_);
      std::string bytes;
      request r;
      while (w.open() && !stopped_ && next(w, bytes, r)) {
        ++requests_;
        handler_(r, w);
      }
      if (tls && w.open()) SSL_shutdown(tls);
    }
    SSL_free(tls);
    std::lock_guard const lock(mutex_);
    std::erase(sockets_, fd);
    ::close(fd);
  }

  bool next(wire& w, std::string& bytes, request& r) const {
    char buffer[4096];
    std::size_t end;
    while ((end = bytes.find("\r\n\r\n")) == bytes.npos) {
      auto const n = w.receive(buffer, sizeof buffer);
      if (n == 0) return false;
      bytes.append(buffer, n);
    }
    r.head = bytes.substr(0, end + 4);
    bytes.erase(0, end + 4);
    r.method = r.head.substr(0, r.head.find(' '));
    r.target =
        r.head.substr(r.method.size() + 1, r.head.find(' ', r.method.size() + 1) - r.method.size() - 1);
    auto const length = r.field("Content-Length");
    auto const size = length.empty() || heads_only_ ? 0u : std::stoul(length);
    while (bytes.size() < size) {
      auto const n = w.receive(buffer, sizeof buffer);
      if (n == 0) return false;
      bytes.append(buffer, n);
    }
    r.body = bytes.substr(0, size);
    bytes.erase(0, size);
    return true;
  }

  handler handler_;
  bool heads_only_;
  SSL_CTX* context_ = nullptr;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<int> connections_{0}, requests_{0};
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace test
