// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/notice_watch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eventually.hpp"

namespace notice_watch_test {

using namespace edl::platform;
using namespace std::chrono_literals;
using report = notice_source::report;

namespace {

/// What a test lets be seen; the last one again and again.
struct scripted {
  std::vector<report> reports;
  std::chrono::milliseconds interval{0};
  std::atomic<std::size_t> looks = 0;
  bool hangs = false;  // the last one, until it is told to stop
};

class script final : public notice_source {
 public:
  explicit script(std::shared_ptr<scripted> of) : of_(std::move(of)) {}
  report look(std::function<bool()> const& stopped) override {
    std::size_t const n = of_->looks++;
    if (of_->hangs && n + 1 >= of_->reports.size()) eventually([&] { return stopped(); });
    return of_->reports[std::min(n, of_->reports.size() - 1)];
  }
  std::chrono::milliseconds interval() const override { return of_->interval; }
  std::string name() const override { return "the script"; }

 private:
  std::shared_ptr<scripted> of_;
};

struct watched {
  explicit watched(std::vector<report> reports, bool hangs = false) : of(std::make_shared<scripted>()) {
    of->reports = std::move(reports);
    of->hangs = hangs;
    it.emplace(std::make_unique<script>(of), edl::logger(edl::severity::critical));
  }
  bool saw_all() const {
    return eventually([&] { return of->looks > of->reports.size(); });
  }
  std::shared_ptr<scripted> of;
  std::optional<notice_watch> it;
};

}  // namespace

TEST_CASE("a notice that comes is known, the newest one, and is not withdrawn") {
  watched const w({{true}, {true, "at ten"}, {false}, {true, "at nine"}, {true}});
  CHECK(w.saw_all());
  CHECK(w.it->notice() == "at nine");
}

TEST_CASE("a notice that is there from the first look on counts only once it is another one") {
  watched const same({{false}, {true, "at ten"}, {true, "at ten"}});
  CHECK(same.saw_all());
  CHECK(same.it->notice().empty());
  watched const other({{true, "soon"}, {true, "soon"}, {true, "at ten"}});
  CHECK(other.saw_all());
  CHECK(other.it->notice() == "at ten");
}

TEST_CASE("a source that does not answer is asked three times, and then seldom") {
  watched const w({{false}, {false}, {false}, {true, "at ten"}});
  CHECK(eventually([&] { return w.of->looks == 3; }));
  CHECK(w.it->notice().empty());
}

TEST_CASE("a watch ends in the middle of a look, and of a pause") {
  {
    watched const w({{true}, {true}}, true);
    CHECK(eventually([&] { return w.of->looks == 2; }));
  }
  auto const of = std::make_shared<scripted>();
  of->reports = {{true}};
  of->interval = 1h;
  notice_watch const w(std::make_unique<script>(of), edl::logger(edl::severity::critical));
  CHECK(eventually([&] { return of->looks == 1; }));
}

}  // namespace notice_watch_test
