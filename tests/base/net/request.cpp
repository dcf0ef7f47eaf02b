// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/request.hpp"

#include <doctest/doctest.h>

#include "base/net/peers.hpp"

namespace request_test {

using namespace peers;
using edl::bytes;
using edl::net::outgoing;

TEST_CASE("messages and payloads of odd sizes arrive whole, gathered from and scattered into many pieces") {
  for (auto const& where : {any_port(), any_name()}) {
    server s({}, {where});
    client c(s.where());
    for (std::size_t size : {0, 1, 63, 64, 65, 4095, 4096, 4097, 16383, 16384, 100'003, 3'000'001}) {
      auto const sent = pattern(size, unsigned(size));
      std::vector<std::byte> got(size);
      outgoing o{.method = echo, .message = std::string(size % 777, 'm')};
      // Pieces of every size, empty ones among them, cut differently on the two ways.
      for (std::size_t at = 0, n = 0; at < size; at += n, n = n * 3 + 1) {
        n = std::min(n, size - at);
        o.payload.push_back(bytes(sent).subspan(at, n));
      }
      for (std::size_t at = 0, n = 5; at < size; at += n, n = n * 2 + 3) {
        n = std::min(n, size - at);
        o.into.push_back(std::span(got).subspan(at, n));
      }
      CAPTURE(size);
      CHECK(c.call(o).message == o.message);
      CHECK(got == sent);
    }
  }
}

TEST_CASE("more pieces than one write takes") {
  server s;
  client c(s.where());
  auto const sent = pattern(100'000, 9);
  std::vector<std::byte> got(sent.size());
  outgoing o{.method = echo};
  for (std::size_t at = 0; at < sent.size(); at += 100) {
    o.payload.push_back(bytes(sent).subspan(at, 100));
    o.into.push_back(std::span(got).subspan(at, 100));
  }
  c.call(o);
  CHECK(got == sent);
}

TEST_CASE("large messages") {
  server s;
  client c(s.where());
  std::string const text(5'000'000, 'x');
  CHECK(c.echo(text) == text);
  CHECK(c.echo("") == "");
  std::string const most(16u << 20, 'y'), more(most.size() + 1, 'z');
  CHECK(c.echo(most) == most);
  CHECK(outcome_of([&] { c.echo(more); }).code == status::invalid);
  CHECK(c.echo("still") == "still");
}

TEST_CASE("a payload that the handler leaves is dropped, and the connection goes on") {
  server s;
  client c(s.where());
  auto const sent = pattern(2'000'000, 1);
  for (int i = 0; i < 5; ++i)
    CHECK(c.call({.method = size_of, .payload = {sent}}).message == std::to_string(sent.size()));
  for (auto m : {refuse, complain, stumble, forget, swallow})
    CHECK(outcome_of([&] { c.call({.method = m, .payload = {sent}}); }).code != status::ok);
  CHECK(c.echo("still") == "still");
  CHECK(s.listener.accepted() == 1);
}

TEST_CASE("how a handler fails reaches the caller with status, text and peer") {
  server s;
  client c(s.where());
  auto const failing = [&](std::uint16_t m, std::string text = {}) {
    return outcome_of([&] { c.call({.method = m, .message = text}); });
  };
  CHECK(failing(refuse).code == status::stale_generation);
  CHECK(failing(refuse).text.find("generation 3 is over") != std::string::npos);
  CHECK(failing(refuse).text.find("peer (" + to_string(s.where()) + ")") == 0);
  CHECK(failing(complain, "disk full").code == status::internal);
  CHECK(failing(complain, "disk full").text.find("disk full") != std::string::npos);
  CHECK(failing(stumble).code == status::internal);
  CHECK(failing(forget).code == status::internal);
  CHECK(failing(forget).text.find("without a reply") != std::string::npos);
  CHECK(failing(swallow, "").code == status::invalid);
  // Texts that are no UTF-8 must not spoil the message that carries them; those that are stay as they are.
  CHECK(failing(complain, "caf\xc3\xa9 \xff\xc3").text.find("caf\xc3\xa9 ??") != std::string::npos);
  CHECK(failing(complain, "\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80 \xe2\x82\xac").text.find(" \xe2\x82\xac") !=
        std::string::npos);
  CHECK(failing(complain, std::string(100'000, '\xe2')).code == status::internal);
  CHECK(s.listener.accepted() == 1);
}

TEST_CASE("a handler knows what is left of the caller's time") {
  server s;
  client c(s.where());
  auto const left = std::stol(c.call({.method = time_left, .timeout = 20s}).message);
  CHECK(left > 1'000);
  CHECK(left <= 20'000);
}

TEST_CASE("a reply whose payload does not fit its place is an error, and nothing is written") {
  server s;
  client c(s.where());
  std::vector<std::byte> room(999, std::byte{1});
  auto const o = outcome_of([&] { c.call({.method = big, .message = "1000", .into = {room}}); });
  CHECK(o.code == status::invalid);
  CHECK(o.text.find("1000 bytes where 999") != std::string::npos);
  CHECK(std::all_of(room.begin(), room.end(), [](std::byte b) { return b == std::byte{1}; }));
  room.resize(1001);
  CHECK(outcome_of([&] { c.call({.method = big, .message = "1000", .into = {room}}); }).code ==
        status::invalid);
  CHECK(outcome_of([&] { c.call({.method = big, .message = "1000"}); }).code == status::invalid);
  CHECK(outcome_of([&] { c.call({.method = echo, .into = {room}}); }).code == status::invalid);
  room.resize(1000);
  c.call({.method = big, .message = "1000", .into = {room}});
  CHECK(room == pattern(1000, 1));
}

}  // namespace request_test
