// SPDX-License-Identifier: Apache-2.0
#include "data.hpp"

#include "commands.hpp"
#include "data/support.hpp"
#include "edl/data/recordio.hpp"
#include "zoo/tool.hpp"

namespace {

std::size_t lines_with(std::string const& text, std::string const& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("inspect --verify tells a damaged chunk once, with the records that it takes along") {
  support::scratch const dir;
  std::string const path = dir / "a.recordio";
  {
    edl::data::recordio_writer out(path, {.with = edl::data::compressor::none});
    for (int i = 0; i < 150; ++i)
      out.write("not an example, but long enough for a chunk to be damaged inside");
    out.close();
  }
  std::string bytes = support::read(path);
  bytes[bytes.size() - 5] ^= 1;
  support::write(path, bytes);
  auto const [code, out, said] = tool_test::run({"data", "inspect", path, "--verify"});
  CAPTURE(said);
  CHECK(code == 1);
  CHECK(lines_with(said, "edl: damaged: ") == 1);
  CHECK(support::has(said, "(the same for all records from 0 to 149)"));
}
