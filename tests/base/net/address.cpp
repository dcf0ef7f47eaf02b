// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/address.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"
#include "edl/core/random.hpp"

namespace address_test {

using edl::net::address;
using edl::net::parse_address;

TEST_CASE("addresses are read and written alike") {
  for (char const* text :
       {"tcp:localhost:80", "tcp:10.0.0.1:65535", "tcp:[::1]:0", "tcp:job-ps-0.ns.svc:2222", "unix:@job-ps-0",
        "unix:@a:b", "unix:/run/x/master", "tcp:h:1!ps-1/00ff", "unix:@a!master"})
    CHECK(to_string(parse_address(text)) == text);
  CHECK(parse_address("tcp:[fe80::1]:7") == address{address::transport::tcp, "fe80::1", 7});
  CHECK(parse_address("unix:@x") == address{address::transport::local, "x", 0});
  CHECK(parse_address("tcp:h:7!ps-1/00ff") == address{address::transport::tcp, "h", 7, "ps-1/00ff"});
  CHECK(place_of(parse_address("unix:/x/y!master")) == "unix:/x/y");
}

TEST_CASE("what is no address is refused with the text and the reason") {
  struct {
    char const *text, *why;
  } const cases[] = {
      {"", "neither tcp: nor unix:"},
      {"localhost:80", "neither"},
      {"http:localhost:80", "neither"},
      {"tcp:localhost", "port is missing"},
      {"tcp::80", "host is missing"},
      {"tcp:[]:80", "host is missing"},
      {"tcp:a:", "not a number"},
      {"tcp:a:65536", "not a number"},
      {"tcp:a:-1", "not a number"},
      {"tcp:a:8x", "not a number"},
      {"tcp:::1:80", "brackets"},
      {"tcp:[::1:80", "brackets"},
      {"tcp:a b:80", "blank"},
      {"unix:tmp/x", "a path or an abstract name"},
      {"unix:@/tmp/x", "does not begin with"},
      {"tcp:h:1!", "identity"},
      {"tcp:h:1!a/b/c", "identity"},
      {"tcp:h:1!/b", "identity"},
      {"unix:@", "missing"},
  };
  for (auto const& c : cases) {
    std::string what = "accepted";
    try {
      parse_address(c.text);
    } catch (edl::error const& e) {
      what = e.what();
    }
    INFO(c.text << " → " << what);
    CHECK(what.find(c.why) != std::string::npos);
    CHECK(what.find("'" + std::string(c.text) + "'") != std::string::npos);
  }
  CHECK_THROWS_AS(parse_address(std::string("unix:@") + std::string(101, 'a')), edl::error);
  CHECK_THROWS_AS(parse_address(std::string("tcp:") + std::string(300, 'a') + ":1"), edl::error);
  CHECK_THROWS_AS(parse_address(std::string_view("unix:@a\0b", 9)), edl::error);
}

TEST_CASE("a list of texts is as many addresses, or the error of the first that is none") {
  std::vector<std::string> texts{"tcp:h:7", "unix:@x"};
  CHECK(edl::net::parse_addresses(texts) == std::vector{parse_address("tcp:h:7"), parse_address("unix:@x")});
  CHECK(edl::net::parse_addresses(std::vector<std::string>{}).empty());
  texts.push_back("nonsense");
  CHECK_THROWS_AS(edl::net::parse_addresses(texts), edl::error);
}

TEST_CASE("any text is an address or an error") {
  edl::random_stream const random{3};
  char const letters[] = "tcpunix:@[]0189 .\n";
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    std::string text = i % 2 ? "tcp:" : "unix:@";
    for (std::uint64_t j = 0; j < random.below(12, 100 * i); ++j)
      text += letters[random.below(sizeof letters - 1, 100 * i + 1 + j)];
    try {
      address const a = parse_address(text);
      REQUIRE(parse_address(to_string(a)) == a);
    } catch (edl::error const&) {
    }
  }
}

TEST_CASE("an error about an address quotes no control characters") {
  for (std::string const text : {"tcp:\x1b[31m:1", "unix:/a\nb", "\x9b"}) {
    std::string said;
    try {
      edl::net::parse_address(text);
    } catch (edl::error const& e) {
      said = e.what();
    }
    CHECK(said.starts_with("address '"));
    CHECK(said.find_first_of("\x1b\n\x9b") == said.npos);
  }
}

}  // namespace address_test
