// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/notice_source.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "edl/core/error.hpp"
#include "scratch_directory.hpp"

namespace notice_source_test {

using namespace edl::platform;

namespace {

bool never() { return false; }

std::string in_file(std::string const& content) {
  scratch const dir;
  std::string const path = dir / "notice";
  std::ofstream(path) << content;
  auto const seen = make_notice_source("file:" + path)->look(never);
  CHECK(seen.answered);
  auto const at = seen.notice.find(path);
  return at == seen.notice.npos ? seen.notice
                                : seen.notice.substr(0, at) + "F" + seen.notice.substr(at + path.size());
}

}  // namespace

TEST_CASE("a flag names a source of notices, or is refused") {
  CHECK(make_notice_source("off") == nullptr);
  auto const file = make_notice_source("file:/run/notice");
  REQUIRE(file);
  CHECK(file->name() == "file /run/notice");
  for (char const* const wrong : {"", "of", "file", "file:", "FILE:/a", "off ", "/run/notice"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(make_notice_source(wrong), edl::usage_error);
  }
}

TEST_CASE("a file is a notice once it exists, whatever it contains") {
  scratch const dir;
  auto const source = make_notice_source("file:" + (dir / "notice"));
  auto seen = source->look(never);
  CHECK((seen.answered && seen.notice.empty()));
  std::ofstream(dir / "notice").close();
  seen = source->look(never);
  CHECK((seen.answered && seen.notice == "file " + (dir / "notice") + " exists"));
  std::filesystem::remove(dir / "notice");
  CHECK(source->look(never).notice.empty());

  CHECK(in_file("") == "file F exists");
  CHECK(in_file(" \n\n") == "file F exists");
  CHECK(in_file("2026-11-20T10:39:00Z\n") == "file F says that its machine goes at 2026-11-20T10:39:00Z");
  CHECK(in_file("1795171140") == "file F says that its machine goes at 2026-11-20T10:39:00Z");
  CHECK(in_file("1795171140.5\n") == "file F says that its machine goes at 2026-11-20T10:39:00Z");
  for (char const* const no_time : {"-5", "1e300", "nan", "inf", "2026-13-40T99:99:99Z", "soon", "10:39"})
    CHECK(in_file(no_time) == std::string("file F says '") + no_time + "'");
  CHECK(in_file("two\nlines\x1b[31m") == "file F says 'two lines [31m'");
  CHECK(in_file(std::string(100'000, 'x')).size() < 200);
  CHECK(in_file(std::string(300, '\0')).starts_with("file F"));
}

TEST_CASE("what is no file of its own is a notice, too, and nobody waits for it") {
  scratch const dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(make_notice_source("file:" + (dir / "pipe"))->look(never).notice ==
        "file " + (dir / "pipe") + " exists");
  std::filesystem::create_directory(dir / "folder");
  CHECK(make_notice_source("file:" + (dir / "folder"))->look(never).notice ==
        "file " + (dir / "folder") + " exists");
  // A folder that is missing holds no notice yet.
  auto const missing = make_notice_source("file:" + (dir / "none/notice"))->look(never);
  CHECK((missing.answered && missing.notice.empty()));
}

}  // namespace notice_source_test
