// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/text_file.hpp"

#include <doctest/doctest.h>
#include <zstd.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/compression.hpp"

namespace text_file_test {

using namespace edl::data::detail;
using support::failure, support::has;

namespace {

std::string gzip(std::string const& text) {
  std::string packed;
  pack_gzip(text, packed);
  return packed;
}

std::string zstd(std::string const& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string all_of(text_file const& file) {
  std::string all(std::size_t(file.size()), '\0');
  file.read(0, all.data(), all.size());
  return all;
}

}  // namespace

TEST_CASE("a text is the same as it lies, by gzip and by Zstandard") {
  support::scratch const dir;
  for (std::string const& text : {std::string(), std::string("a\nb\n"), std::string(3'000'000, 'x')}) {
    CHECK(all_of(text_file(support::write(dir / "a.csv", text))) == text);
    CHECK(all_of(text_file(support::write(dir / "a.csv.gz", gzip(text)))) == text);
    CHECK(all_of(text_file(support::write(dir / "a.csv.zst", zstd(text)))) == text);
  }
  text_file const file(support::write(dir / "b.gz", gzip("0123456789")));
  char three[3];
  file.read(4, three, 3);
  CHECK(std::string(three, 3) == "456");
  CHECK(has(failure([&] { file.read(8, three, 3); }), "b.gz: ends at byte 10 unpacked"));
  CHECK(file.digest() != text_file(support::write(dir / "c.gz", gzip("0123456780"))).digest());
}

TEST_CASE("several frames follow one another") {
  std::string into;
  unpack_zstd(zstd("ab") + zstd("") + zstd("cd"), 100, into);
  CHECK(into == "abcd");
}

TEST_CASE("packed files that are damaged, cut off or too large are refused with their names") {
  support::scratch const dir;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * i);
  auto const packed = zstd(text);
  auto const refused = [&](std::string const& bytes) {
    return failure([&] { text_file{support::write_anew(dir / "a.zst", bytes)}; });
  };
  CHECK(refused(packed) == "");
  CHECK(has(refused(packed.substr(0, packed.size() / 2)), "a.zst: zstd stream is cut off"));
  CHECK(has(refused("nonsense"), "a.zst: zstd stream is damaged near byte 0"));
  CHECK(has(refused(""), "a.zst: zstd stream is cut off after 0 bytes"));
  CHECK(has(failure([&] { text_file{support::write(dir / "a.gz", "nonsense")}; }),
            "a.gz: gzip stream is damaged"));
  std::string into;
  CHECK(has(failure([&] { unpack_zstd(zstd(std::string(1001, 'x')), 1000, into); }),
            "unpacks to more than 1000"));
  unpack_zstd(zstd(std::string(1000, 'x')), 1000, into);
  CHECK(into.size() == 1000);
}

TEST_CASE("the ending of a packed file is not that of its content") {
  CHECK(without_packing("a.csv.gz") == "a.csv");
  CHECK(without_packing("a.csv.zst") == "a.csv");
  CHECK(without_packing("a.csv") == "a.csv");
}

}  // namespace text_file_test
