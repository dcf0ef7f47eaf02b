// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "edl/base/wire/frame.hpp"

namespace job {

/// Stands between members of a job and its master, and does what it is told to what passes.
class relay {
 public:
  /// A master's place as its log has it, behind "listens at tcp:".
  static asio::ip::tcp::endpoint place_of(std::string const& log) {
    std::string const where = log.substr(log.find("tcp:", log.find("listens at ")) + 4);
    auto const colon = where.find(':');
    return {asio::ip::make_address(where.substr(0, colon)),
            std::uint16_t(std::stoi(where.substr(colon + 1)))};
  }

  /// Asked about each answer of the master to a method, one at a time. True: the answer is lost, and the
  /// connection that it came on. The job has to have --transport_security=none.
  using loses = std::function<bool(std::uint16_t method)>;
  /// May change bytes that pass, in either direction, one piece at a time. True: it has.
  using alters = std::function<bool(std::span<std::byte>)>;

  relay(asio::ip::tcp::endpoint master, loses ask) : relay(std::move(master), std::move(ask), {}) {}
  relay(asio::ip::tcp::endpoint master, alters change) : relay(std::move(master), {}, std::move(change)) {}
  relay(relay const&) = delete;
  ~relay() {
    asio::error_code ignored;
    closing_ = true;
    tcp::socket(io_).connect(acceptor_.local_endpoint(), ignored);  // it waits for one
    accepts_.join();
    for (auto& one : connections_) {
      one.close();
      one.there.join();
      one.back.join();
    }
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

  /// Connections on which something was lost or altered, and those of them that have ended.
  int spoiled() const { return spoiled_; }
  int ended() const { return ended_; }

 private:
  using tcp = asio::ip::tcp;

  struct connection {
    explicit connection(asio::io_context& io) : member(io), master(io) {}
    void close() {
      for (tcp::socket* s : {&member, &master}) ::shutdown(s->native_handle(), SHUT_RDWR);
    }
    tcp::socket member, master;
    std::map<std::uint64_t, std::uint16_t> methods;  // by call; under the lock
    std::atomic<bool> spoiled{false};
    std::thread there, back;
  };

  relay(tcp::endpoint master, loses ask, alters change)
      : master_(std::move(master)),
        loses_(std::move(ask)),
        alters_(std::move(change)),
        acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    accepts_ = std::thread([this] { accept(); });
  }

  void accept() {
    for (;;) {
      auto& c = connections_.emplace_back(io_);
      asio::error_code failed;
      acceptor_.accept(c.member);
      c.master.connect(master_, failed);
      if (failed || closing_) c.close();
      c.there = std::thread([this, &c] { pass(c, c.member, c.master); });
      c.back = std::thread([this, &c] { pass(c, c.master, c.member); });
      if (closing_) return;
    }
  }

  void pass(connection& c, tcp::socket& from, tcp::socket& to) {
    loses_ ? pass_frames(c, from, to) : pass_bytes(c, from, to);
    c.close();
    if (c.spoiled.exchange(false)) ++ended_;
  }

  void pass_frames(connection& c, tcp::socket& from, tcp::socket& to) {
    std::vector<std::byte> frame;
    asio::error_code failed;
    while (!failed) {
      frame.resize(edl::wire::frame_header_size);
      if (asio::read(from, asio::buffer(frame), failed); failed) return;
      auto const h = edl::wire::decode(std::span(frame).first<edl::wire::frame_header_size>());
      std::size_t const head = frame.size();
      frame.resize(head + h.message_size + edl::wire::frame_padding(h) + h.payload_size);
      asio::read(from, asio::buffer(frame.data() + head, frame.size() - head), failed);
      if (failed || lost(c, h)) return;
      asio::write(to, asio::buffer(frame), failed);
    }
  }

  bool lost(connection& c, edl::wire::frame_header const& h) {
    std::lock_guard const guard(lock_);
    if (h.kind == edl::wire::frame_kind::request) c.methods[h.call] = h.method;
    return h.kind == edl::wire::frame_kind::response && loses_(c.methods.at(h.call)) && spoil(c);
  }

  void pass_bytes(connection& c, tcp::socket& from, tcp::socket& to) {
    std::array<std::byte, 16'384> bytes;
    asio::error_code failed;
    while (!failed) {
      std::size_t const n = from.read_some(asio::buffer(bytes), failed);
      if (failed) return;
      {
        std::lock_guard const guard(lock_);
        if (alters_(std::span(bytes).first(n))) spoil(c);
      }
      asio::write(to, asio::buffer(bytes, n), failed);
    }
  }

  bool spoil(connection& c) {
    if (!c.spoiled.exchange(true)) ++spoiled_;
    return true;
  }

  tcp::endpoint master_;
  loses loses_;
  alters alters_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::atomic<bool> closing_{false};
  std::atomic<int> spoiled_{0}, ended_{0};
  std::list<connection> connections_;
  std::mutex lock_;
  std::thread accepts_;
};

}  // namespace job
