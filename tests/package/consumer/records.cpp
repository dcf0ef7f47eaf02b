// SPDX-License-Identifier: Apache-2.0
// A program that takes edl's headers alone, without its library: it writes records and reads them back.
#include <cstdio>
#include <edl/base/net/address.hpp>
#include <edl/compute/data/format/example.hpp>
#include <edl/compute/data/format/record_file.hpp>
#include <string>

int main() {
  edl::example e;
  edl::example_builder(e).integer("label", 7);
  std::string bytes;
  edl::encode(e, bytes);
  std::string const there = to_string(edl::net::parse_address("tcp:127.0.0.1:2222"));
  std::printf("%zu bytes, %s\n", bytes.size(), there.c_str());
  return there == "tcp:127.0.0.1:2222" ? 0 : 1;
}
