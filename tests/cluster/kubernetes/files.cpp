// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/files.hpp"

#include <doctest/doctest.h>

#include "cluster/kubernetes/support.hpp"

namespace files_test {

namespace k8s = edl::kubernetes;
using test::folder, test::says, test::thrown;

TEST_CASE("a file is read anew when it has changed, and only then") {
  folder const f;
  k8s::watched_file file((f.path / "x").string(), "the thing");
  CHECK(says(thrown([&] { file.text(); }),
             {"the thing: the file '" + f.path.string() + "/x' cannot be read: No such"}));
  f.write("x", "one");
  CHECK(file.text() == "one");
  CHECK(file.changed());
  CHECK(file.text() == "one");
  CHECK_FALSE(file.changed());
  f.write("x", "two");  // as long as the one before
  CHECK(file.text() == "two");
  CHECK(file.changed());
  f.write("x", "two");
  CHECK(file.text() == "two");
  CHECK_FALSE(file.changed());
  std::filesystem::remove(f.path / "x");
  CHECK(file.text() == "two");
  std::filesystem::create_directory(f.path / "x");
  CHECK(file.text() == "two");
}

TEST_CASE("what is too large, or no file, is not read") {
  folder const f;
  CHECK(says(thrown([&] { k8s::read_text(f.path.string(), "it"); }), {"it: the file", "Is a directory"}));
  f.write("large", std::string((16 << 20) + 1, 'x'));
  CHECK(says(thrown([&] { k8s::read_text((f.path / "large").string(), "it"); }), {"larger than 16 MiB"}));
  CHECK(k8s::read_text(f.write("fits", std::string(16 << 20, 'x')), "it").size() == 16 << 20);
  CHECK(says(thrown([&] { k8s::read_text("/dev/zero", "it"); }), {"larger than 16 MiB"}));
}

TEST_CASE("base64 is decoded and encoded as RFC 4648 has it") {
  for (auto const& [plain, coded] : {std::pair<std::string, std::string>{"", ""},
                                     {"f", "Zg=="},
                                     {"fo", "Zm8="},
                                     {"foo", "Zm9v"},
                                     {"foob", "Zm9vYg=="},
                                     {"fooba", "Zm9vYmE="},
                                     {"foobar", "Zm9vYmFy"},
                                     {"\xff\xfe\xfb", "//77"},
                                     {std::string("\0\0", 2), "AAA="}}) {
    CHECK(k8s::base64_encoded(plain) == coded);
    CHECK(k8s::base64_decoded(coded, "it") == plain);
  }
  CHECK(k8s::base64_decoded("Zm9v\r\nYmFy\n", "it") == "foobar");
  for (char const* bad : {"Z", "Zg", "Zg=", "Zg===", "Zm9vZ", "Zg==Zg==", "Zm9v!", "====", "Zm9v-_"}) {
    CAPTURE(bad);
    CHECK(says(thrown([&] { k8s::base64_decoded(bad, "it"); }), {"it is damaged"}));
  }
}

}  // namespace files_test
