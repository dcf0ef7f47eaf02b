// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kubernetes/double.hpp"

namespace edl::testing::kubernetes {

/// One recorded exchange: a request, a line of "=", the response.
struct transcript {
  std::string method, path, body;
  httplib::Headers headers;
  int code = 0;
  std::string answer;

  explicit transcript(std::filesystem::path const& file) {
    std::ifstream in(file);
    std::string const text((std::istreambuf_iterator<char>(in)), {});
    std::size_t const line = text.find("\n=====\n");
    std::string const response = text.substr(line + 7);
    std::istringstream request(text.substr(0, line)), answered(response);
    std::string version, word;
    request >> method >> path >> version;
    std::getline(request, word);
    for (std::string h; std::getline(request, h) && !h.empty();)
      if (!h.starts_with("Host:")) headers.emplace(h.substr(0, h.find(':')), h.substr(h.find(':') + 2));
    body.assign(std::istreambuf_iterator<char>(request), {});
    while (!body.empty() && body.back() == '\n') body.pop_back();
    answered >> version >> code;
    answer = response.substr(response.find("\n\n") + 2);
  }

  std::vector<nlohmann::json> events() const {
    std::vector<nlohmann::json> out;
    std::istringstream in(answer);
    for (std::string l; std::getline(in, l);)
      if (!l.empty()) out.push_back(nlohmann::json::parse(l));
    return out;
  }
};

inline std::filesystem::path transcripts() {
  char const* const data = std::getenv("EDL_TEST_DATA");
  return std::filesystem::path(data ? data : "") / "../k8s/transcripts";
}

/// A client that knows the double's certificate.
class caller : public httplib::SSLClient {
 public:
  explicit caller(cluster const& c) : httplib::SSLClient("127.0.0.1", c.port()) {
    set_ca_cert_path(c.ca_file().c_str());
    enable_server_certificate_verification(true);
    set_read_timeout(60);
    set_tcp_nodelay(true);
    set_keep_alive(true);
  }
};

/// A watch over HTTPS that collects what comes.
class watching {
 public:
  watching(cluster const& c, std::string const& path) : client_(c), token_(c.token()) {
    thread_ = std::thread([this, path] {
      std::string line;
      client_.Get(path, {{"Authorization", "Bearer " + token_}}, [&](char const* data, std::size_t size) {
        for (char const ch : std::string_view(data, size)) {
          if (ch != '\n') {
            line += ch;
            continue;
          }
          std::lock_guard const held(mutex_);
          events_.push_back(nlohmann::json::parse(line));
          line.clear();
        }
        return !stopped_;
      });
      ended_ = true;
    });
  }
  ~watching() {
    stopped_ = true;
    client_.stop();
    thread_.join();
  }
  std::vector<nlohmann::json> events() const {
    std::lock_guard const held(mutex_);
    return events_;
  }
  bool ended() const { return ended_; }

 private:
  caller client_;
  std::string token_;
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> events_;
  std::atomic<bool> stopped_{false}, ended_{false};
  std::thread thread_;
};

}  // namespace edl::testing::kubernetes
