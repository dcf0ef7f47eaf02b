// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/wire/scratch.hpp"

/// Debian's Chromium without a screen, told what to do by its protocol for developers over a pipe.
class browser {
 public:
  /// Whether there is one; a test that misses it says so.
  static bool there() {
    static bool const is = std::system("chromium --version >/dev/null 2>&1") == 0;
    if (!is) MESSAGE("chromium is not installed: no browser has looked at the page");
    return is;
  }

  browser() {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      int const in = ::fcntl(to[0], F_DUPFD, 10), out = ::fcntl(from[1], F_DUPFD, 10),
                none = ::open("/dev/null", O_RDWR);
      ::dup2(none, 1), ::dup2(none, 2), ::dup2(in, 3), ::dup2(out, 4);
      ::setpgid(0, 0);
      std::string const profile = "--user-data-dir=" + (profile_ / "");
      ::execlp("chromium", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
               profile.c_str(), "--remote-debugging-pipe", nullptr);
      ::_exit(127);
    }
    ::close(to[0]), ::close(from[1]);
    in_ = to[1], out_ = from[0];
    auto const target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
    session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
    for (char const* const part : {"Page.enable", "Runtime.enable", "Log.enable"}) call(part);
    // Keys and pictures are for this page, whatever else has a window.
    call("Emulation.setFocusEmulationEnabled", {{"enabled", true}});
  }
  browser(browser const&) = delete;
  browser& operator=(browser const&) = delete;
  ~browser() {
    ::close(in_), ::close(out_);
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  nlohmann::json call(std::string const& method,
                      nlohmann::json const& parameters = nlohmann::json::object()) {
    nlohmann::json what{{"id", ++calls_}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) what["sessionId"] = session_;
    std::string const text = what.dump();
    asked_ = text;
    if (::write(in_, text.c_str(), text.size() + 1) != ssize_t(text.size() + 1))
      throw std::runtime_error("the browser is gone");
    for (;;) {
      auto const answer = next();
      if (answer.value("id", 0) == calls_) {
        if (answer.contains("error")) throw std::runtime_error(method + ": " + answer["error"].dump());
        return answer.at("result");
      }
    }
  }

  /// What JavaScript makes of an expression; a promise is waited for.
  nlohmann::json run(std::string const& expression) {
    auto const r = call("Runtime.evaluate",
                        {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    if (r.contains("exceptionDetails"))
      throw std::runtime_error(expression + ": " + r["exceptionDetails"].dump());
    return r.at("result").value("value", nlohmann::json());
  }

  /// Until this holds.
  void until(std::string const& condition) {
    run("new Promise(ok => { const look = () => (" + condition +
        ") ? ok() : requestAnimationFrame(look); look(); })");
  }

  void open(std::string const& address) {
    call("Page.navigate", {{"url", address}});
    until("document.readyState === 'complete' && location.href !== 'about:blank'");
  }

  void press(std::string const& key) {
    for (char const* const type : {"keyDown", "keyUp"})
      call("Input.dispatchKeyEvent", {{"type", type},
                                      {"key", key},
                                      {"code", key == " " ? "Space" : key},
                                      {"windowsVirtualKeyCode", key == "Tab" ? 9
                                                                : key == " " ? 32
                                                                             : 0},
                                      {"text", key == " " && *type == 'k' && type[3] == 'D' ? " " : ""}});
  }

  /// Every width from a telephone's to a large screen's shows the page without scrolling sideways.
  void check_widths() {
    for (int const width : {400, 700, 1000, 1920})
      for (char const* const scheme : {"light", "dark"}) {
        call("Emulation.setEmulatedMedia",
             {{"features", {{{"name", "prefers-color-scheme"}, {"value", scheme}}}}});
        call("Emulation.setDeviceMetricsOverride",
             {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}});
        until("innerWidth === " + std::to_string(width));
        CAPTURE(width);
        CHECK(run("document.documentElement.scrollWidth") <= width);
      }
  }

  /// What a screen reader is told of what can be used, and of pictures, has a name.
  void check_names() {
    static std::set<std::string> const named{"button", "checkbox", "combobox", "textbox", "searchbox",
                                             "link",   "image",    "img",      "table",   "progressbar",
                                             "region", "heading",  "list"};
    auto const tree = call("Accessibility.getFullAXTree");
    for (auto const& node : tree.at("nodes")) {
      std::string const role = node.value("/role/value"_json_pointer, "");
      if (node.value("ignored", false) || !named.contains(role)) continue;
      if (role == "list" && node.value("/name/value"_json_pointer, "").empty()) continue;
      CAPTURE(node.dump());
      CHECK_FALSE(node.value("/name/value"_json_pointer, "").empty());
    }
  }

  /// What went wrong in the page: exceptions, refused requests.
  std::vector<std::string> const& problems() const { return problems_; }

 private:
  nlohmann::json next() {
    for (std::size_t end; (end = buffer_.find('\0')) == buffer_.npos;) {
      ::pollfd p{out_, POLLIN, 0};
      char some[1 << 16];
      auto const n = ::poll(&p, 1, 300'000) == 1 ? ::read(out_, some, sizeof some) : 0;
      if (n <= 0) throw std::runtime_error("the browser has no answer to " + asked_);
      buffer_.append(some, std::size_t(n));
    }
    auto one = nlohmann::json::parse(buffer_.substr(0, buffer_.find('\0')));
    buffer_.erase(0, buffer_.find('\0') + 1);
    std::string const method = one.value("method", "");
    if (method == "Runtime.exceptionThrown" || method == "Log.entryAdded") problems_.push_back(one.dump());
    return one;
  }

  scratch profile_;
  ::pid_t pid_ = -1;
  int in_ = -1, out_ = -1, calls_ = 0;
  std::string session_, asked_, buffer_;
  std::vector<std::string> problems_;
};
