// SPDX-License-Identifier: Apache-2.0
// The page as a browser shows it.
#include "job/train/dashboard/browser.hpp"

#include <filesystem>
#include <fstream>

#include "edl/job/train/dashboard/dashboard.hpp"

namespace page_in_a_browser_test {

using edl::train::history_file;

namespace {

std::string line(int step) {
  return "{\"step\":" + std::to_string(step) + ",\"time\":1.5,\"loss\":" + std::to_string(2.0 / (1 + step)) +
         ",\"learning_rate\":0.1,\"records_per_s\":900,\"workers\":1,\"servers\":0}\n";
}

std::string text_of(std::string const& id) { return "document.getElementById('" + id + "').innerText"; }

}  // namespace

TEST_CASE("a browser shows how a job does, what happens when it happens, and curves that keys can read") {
  if (!browser::there()) return;
  scratch const dir;
  std::filesystem::create_directories(dir / "a");
  std::filesystem::create_directories(dir / "b");
  std::ofstream(dir / "a/history.jsonl") << line(10) << line(20);
  std::ofstream(dir / "b/history.jsonl") << line(10) << "{\"step\":10,\"metrics\":{\"accuracy\":0.5}}\n";
  edl::job j;
  j.name = "<b>digits</b>";
  j.observe.dashboard = 0;
  j.strategy = edl::strategy::parameter_server;
  edl::master::coordinator decisions({.training = {{"t", 640}}, .num_workers = 1, .num_servers = 1}, {});
  edl::train::dashboard page(j, dir / "a/history.jsonl", {}, edl::logger(edl::severity::critical));
  browser b;
  b.open(page.address());
  page.look(decisions, decisions.progress(), {});
  b.until(text_of("state") + " === 'gathering' && " + text_of("link") + ".includes('Live')");
  CHECK(b.run(text_of("name")) == j.name);
  b.until("document.querySelectorAll('.plot path').length > 0");
  page.happened({edl::severity::info, "worker 0 joined", edl::master::topic::joined});
  b.until(text_of("events") + ".includes('worker 0 joined')");
  page.listener().line(history_file::kind::evaluation, 20, "{\"step\":20,\"metrics\":{\"accuracy\":0.75}}\n");
  b.until(text_of("charts") + ".includes('accuracy 0.75') || " + text_of("charts") + ".includes('0.75')");
  // The first key stops at a link to the contents; a curve is read step by step.
  b.press("Tab");
  CHECK(b.run("document.activeElement.className") == "skip");
  b.run("document.querySelector('.plot').focus()");
  b.press("Home");
  b.until("document.querySelector('.readout').innerText.startsWith('step 10')");
  b.press("ArrowRight");
  b.until("document.querySelector('.readout').innerText.startsWith('step 20')");
  CHECK(b.run("getComputedStyle(document.activeElement).outlineStyle") == "solid");
  // Another run's curve beside this one's.
  b.run("document.getElementById('compare').open = true");
  b.until("document.querySelector('#others input[type=checkbox][value=b]') !== null");
  CHECK(b.run("document.querySelectorAll('#others tbody tr').length") == 1);
  b.run("document.querySelector('#others input[value=b]').focus()");
  b.press(" ");
  b.until(text_of("charts") + ".includes('b, ') || " + text_of("charts") + ".includes('b 0.')");
  page.worst(
      20, R"([{"record":7,"file":"part-0","in_file":7,"loss":3.5,"label":1,"class":8,"probability":0.9}])");
  page.look(decisions, decisions.progress(), {});
  b.until(text_of("worst") + ".includes('Worst records of step 20') && " + text_of("worst-records") +
          ".includes('3.5')");
  b.check_names();
  b.check_widths();
  CHECK(b.run("performance.getEntriesByType('resource').every(r => r.name.startsWith(location.origin))") ==
        true);
  INFO("first paint after ",
       b.run("performance.getEntriesByType('paint').map(p => p.startTime).join(' ')").dump(), " ms");
  for (std::string const& problem : b.problems()) CHECK_MESSAGE(false, problem);
}

}  // namespace page_in_a_browser_test
