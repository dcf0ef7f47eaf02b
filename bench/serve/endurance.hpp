// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "load.hpp"
#include "program_at_work.hpp"

namespace bench {

/// How a server fares for a while: first with good requests alone, then with those beside malformed ones and
/// clients that read or write slowly, while a job trains and it takes each of its versions over.
class endurance {
 public:
  /// `directory`: of the job's checkpoints; `rate`: good requests a second.
  endurance(std::uint16_t port, pid_t server, std::string good, std::string directory, double rate)
      : port_(port),
        server_(server),
        good_(std::move(good)),
        directory_(std::move(directory)),
        pause_(std::chrono::nanoseconds(std::int64_t(1e9 / rate))) {}

  void run(double quiet_s, double busy_s) {
    ask_well(quiet_s, quiet_);
    std::vector<std::jthread> others;
    others.emplace_back([this](std::stop_token const& s) { ask_badly(s); });
    for (int i = 0; i < 4; ++i) others.emplace_back([this](std::stop_token const& s) { read_slowly(s); });
    others.emplace_back([this](std::stop_token const& s) { write_slowly(s); });
    for (int part = 0; part < 10; ++part) {
      ask_well(busy_s / 10, busy_);
      memory_.push_back(resident());
    }
    for (auto& one : others) one.request_stop();
  }

  void tell() {
    double const before = quantile(quiet_, 0.99), since = quantile(busy_, 0.99);
    fmt::print("good requests: {} alone, {} beside others; failed: {}\n", quiet_.size(), busy_.size(),
               failed_);
    fmt::print("p50: {:.3f} ms alone, {:.3f} ms beside others; p99: {:.3f} ms, {:.3f} ms, {:.2f} times\n",
               quantile(quiet_, 0.5), quantile(busy_, 0.5), before, since, since / before);
    fmt::print("malformed requests: {} answered with 4xx, {} in another way\n", refused_.load(), odd_.load());
    fmt::print(
        "versions: {} answered; from a step to the first answer that uses it: median {:.3f} s, at most "
        "{:.3f} s\n",
        lags_.size(), quantile(lags_, 0.5), quantile(lags_, 1));
    fmt::print("resident memory, by tenths of the time, MB:");
    for (double const m : memory_) fmt::print(" {:.0f}", m);
    fmt::print("\n");
  }

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  /// When a job has begun to write a version, which is as soon as its last step is made; 0: nobody knows.
  double begun(std::uint64_t version) const {
    struct ::statx s{};
    if (::statx(AT_FDCWD, fmt::format("{}/version-{}", directory_, version).c_str(), 0, STATX_BTIME, &s) !=
            0 ||
        !(s.stx_mask & STATX_BTIME))
      return 0;
    return double(s.stx_btime.tv_sec) + 1e-9 * double(s.stx_btime.tv_nsec);
  }

  /// At the rate, or as fast as they are answered.
  void ask_well(double seconds, std::vector<double>& times) {
    auto c = std::make_unique<client>(port_);
    for (auto const since = clock_type::now(); milliseconds_since(since) < 1e3 * seconds;) {
      auto const began = clock_type::now();
      try {
        c->ask(good_);
        std::string const head = c->answer();
        times.push_back(milliseconds_since(began));
        if (!head.starts_with("HTTP/1.1 200")) ++failed_;
        auto const at = head.find("Edl-Model-Version: ");
        if (at != head.npos && (version_ != std::stoull(head.substr(at + 19, 20)))) {
          version_ = std::stoull(head.substr(at + 19, 20));
          if (double const written = begun(version_); written > 0) lags_.push_back(now() - written);
        }
      } catch (std::exception const&) {
        ++failed_;
        c = std::make_unique<client>(port_);
      }
      std::this_thread::sleep_until(began + pause_);
    }
  }

  void ask_badly(std::stop_token const& over) {
    std::string const bad[] = {
        post("/v2/models/mlp/infer", "", "{"),
        post("/v2/models/mlp/infer", "",
             R"({"inputs":[{"name":"image","shape":[1,1e9],"datatype":"FP32","data":[]}]})"),
        post("/v2/models/mlp/infer", "Inference-Header-Content-Length: 99999\r\n", "{}"),
        post("/v1/models/mlp:predict", "", R"({"instances":[[1,2,3]]})"),
        post("/v1/models/mlp:predict", "", "{\"instances\":" + std::string(20'000, '[')),
        post("/v2/models/none/infer", "", "{}"),
        "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n",
        "\x16\x03\x01\x02 this is no HTTP\r\n\r\n",
        "POST /v2/models/mlp/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: "
        "chunked\r\n\r\n"};
    for (std::size_t i = 0; !over.stop_requested(); ++i) {
      try {
        client c(port_);
        c.ask(bad[i % std::size(bad)]);
        ++(c.answer().starts_with("HTTP/1.1 4") ? refused_ : odd_);
      } catch (std::exception const&) {
        ++odd_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  /// Asks on without reading, then reads byte by byte.
  void read_slowly(std::stop_token const& over) {
    while (!over.stop_requested()) try {
        client c(port_);
        c.socket().non_blocking(true);
        asio::error_code failed;
        for (int i = 0; i < 2000 && !over.stop_requested(); ++i) {
          c.socket().write_some(asio::buffer(good_), failed);
          char one;
          c.socket().read_some(asio::buffer(&one, 1), failed);
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      } catch (std::exception const&) {
      }
  }

  void write_slowly(std::stop_token const& over) {
    while (!over.stop_requested()) try {
        client c(port_);
        for (char const letter : good_) {
          if (over.stop_requested()) return;
          c.ask({&letter, 1});
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
      } catch (std::exception const&) {  // cut off in time
      }
  }

  double resident() const {
    std::ifstream in(fmt::format("/proc/{}/statm", server_));
    double all = 0, here = 0;
    in >> all >> here;
    return here * 4096 / 1e6;
  }

  std::uint16_t port_;
  pid_t server_;
  std::string good_, directory_;
  std::chrono::nanoseconds pause_;
  std::vector<double> quiet_, busy_, memory_;
  std::uint64_t failed_ = 0;
  std::atomic<std::uint64_t> refused_{0}, odd_{0};
  std::uint64_t version_ = 0;  // of the last answer
  std::vector<double> lags_;
};

}  // namespace bench
