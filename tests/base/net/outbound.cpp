// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/outbound.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "edl/core/random.hpp"

namespace outbound_test {

using edl::bytes;
using edl::net::outbound;
using edl::net::outbound_queue;

namespace {

bytes of(std::string const& s) { return std::as_bytes(std::span(s)); }

std::string text(std::span<asio::const_buffer const> buffers) {
  std::string all;
  for (auto const& b : buffers) all.append(static_cast<char const*>(b.data()), b.size());
  return all;
}

std::string whole(outbound const& f) {
  std::string all(reinterpret_cast<char const*>(f.head.data()), f.head.size());
  all.append(reinterpret_cast<char const*>(f.message.data()), f.message.size());
  all.append(f.padding, '\0');
  for (bytes part : f.parts) all.append(reinterpret_cast<char const*>(part.data()), part.size());
  return all;
}

}  // namespace

TEST_CASE("frames leave in order and whole, however little is taken at a time") {
  edl::random_stream const random{5};
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < 40; ++i)
      texts.push_back(std::string(random.below(150, 1000 * round + i), char('a' + i)));
    std::vector<std::vector<bytes>> parts;
    for (std::size_t i = 0; i < 10; ++i) {
      parts.emplace_back();
      for (std::size_t j = 0; j < i; ++j) parts.back().push_back(of(texts[(i * 3 + j) % texts.size()]));
    }
    std::vector<std::unique_ptr<outbound>> frames;
    outbound_queue queue;
    std::string expected, seen;
    for (std::size_t i = 0; i < 10; ++i) {
      std::uint64_t payload = 0;
      for (bytes part : parts[i]) payload += part.size();
      frames.push_back(std::make_unique<outbound>(
          edl::wire::frame_header{
              .call = i, .message_size = std::uint32_t(texts[i].size()), .payload_size = payload},
          of(texts[i]), parts[i]));
      REQUIRE(frames.back()->size == whole(*frames.back()).size());
      expected += whole(*frames.back());
      queue.push(*frames.back());
    }
    for (std::uint64_t step = 0; !queue.empty(); ++step) {
      std::string const next = text(queue.gather());
      REQUIRE_FALSE(next.empty());
      std::size_t n = std::min<std::size_t>(1 + random.below(300, 1000 * round + 500 + step), next.size());
      seen += next.substr(0, n);
      while (n > 0) {
        outbound& front = *queue.front();
        n = queue.advance(n);
        if (front.done < front.size) break;
        queue.pop();
      }
    }
    REQUIRE(seen == expected);
  }
}

TEST_CASE("a frame can be taken out of the queue, wherever it stands") {
  for (std::size_t out = 0; out < 3; ++out) {
    outbound_queue queue;
    outbound a({.call = 1}, {}, {}), b({.call = 2}, {}, {}), c({.call = 3}, {}, {}), d({.call = 4}, {}, {});
    outbound* const all[] = {&a, &b, &c};
    for (auto* f : all) queue.push(*f);
    CHECK(queue.remove(*all[out]));
    CHECK_FALSE(queue.remove(*all[out]));
    queue.push(d);
    std::string expected;
    for (auto* f : all)
      if (f != all[out]) expected += whole(*f);
    CHECK(text(queue.gather()) == expected + whole(d));
  }
  outbound_queue queue;
  outbound only({}, {}, {}), next({.call = 9}, {}, {});
  queue.push(only);
  CHECK(queue.remove(only));
  CHECK(queue.empty());
  queue.push(next);
  CHECK(text(queue.gather()) == whole(next));
}

}  // namespace outbound_test
