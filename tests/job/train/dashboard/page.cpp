// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/dashboard/page.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "base/wire/scratch.hpp"

namespace dashboard_page_test {

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("the page is small, whole, and asks nobody else for anything") {
  auto const page = edl::train::make_dashboard_page();
  CHECK(page.text.size() <= 100'000);
  CHECK(page.text.starts_with("<!doctype html>\n<html lang=\"en\">"));
  std::string text = page.text;
  std::string const space = "http://www.w3.org/2000/svg";  // a name, which nothing is fetched from
  text.replace(text.find(space), space.size(), "");
  for (char const* const other : {"http:", "https:", "//cdn", " src=", "@import", "url("}) {
    CAPTURE(other);
    CHECK_FALSE(has(text, other));
  }
  CHECK(has(text, "prefers-color-scheme: dark"));
  CHECK(has(text, "aria-live=\"polite\""));
}

TEST_CASE("text from outside cannot become HTML or a script, and the policy allows nothing else") {
  auto const page = edl::train::make_dashboard_page();
  for (char const* const way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                                "Function(", "style=", "onclick=", "onload="}) {
    CAPTURE(way);
    CHECK_FALSE(has(page.text, way));
  }
  CHECK(has(page.policy, "default-src 'none'; script-src 'sha256-"));
  CHECK(has(page.policy, "frame-ancestors 'none'"));
  CHECK_FALSE(has(page.policy, "unsafe"));
  // A digest that is not of the text would be a page without a script.
  CHECK(page.text.find("<script>") == page.text.rfind("<script>"));
  CHECK_FALSE(has(edl::train::dashboard_script(), "</script"));
}

TEST_CASE("the script is one that a browser reads") {
  if (std::system("node --version >/dev/null 2>&1") != 0) return;  // nobody here can tell
  scratch const dir;
  std::ofstream(dir / "page.js") << edl::train::dashboard_curves() << edl::train::dashboard_script();
  CHECK(std::system(("node --check " + (dir / "page.js")).c_str()) == 0);
}

}  // namespace dashboard_page_test
