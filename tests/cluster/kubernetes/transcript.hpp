// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace test {

/// One recorded exchange with a real API server.
struct transcript {
  std::string name, method, target, sent;  ///< `sent`: the request's body
  std::string head, body;                  ///< the answer's; lines of the head end in CRLF
  int code = 0;
  bool chunked = false, watch = false;

  /// The answer as it was on the wire; of a chunked body each line is a piece.
  std::string bytes() const {
    if (!chunked) return head + body;
    std::string out = head;
    for (std::size_t at = 0; at < body.size();) {
      auto const end = std::min(body.find('\n', at), body.size() - 1) + 1;
      char size[20];
      std::snprintf(size, sizeof size, "%zx\r\n", end - at);
      out += size + body.substr(at, end - at) + "\r\n";
      at = end;
    }
    return out + "0\r\n\r\n";
  }
  /// The lines of the body: a watch's events.
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < body.size();) {
      auto const end = std::min(body.find('\n', at), body.size());
      if (end > at) out.push_back(body.substr(at, end - at));
      at = end + 1;
    }
    return out;
  }
};

inline transcript read_transcript(std::filesystem::path const& file) {
  std::ifstream in(file);
  std::string const text((std::istreambuf_iterator<char>(in)), {});
  auto const middle = text.find("\n=====\n");
  std::string_view const request = std::string_view(text).substr(0, middle);
  std::string_view const answer = std::string_view(text).substr(middle + 7);
  transcript t;
  t.name = file.filename().string();
  t.method = request.substr(0, request.find(' '));
  t.target =
      request.substr(t.method.size() + 1, request.find(' ', t.method.size() + 1) - t.method.size() - 1);
  t.watch = t.target.find("watch=1") != t.target.npos;
  auto const blank = request.find("\n\n");
  if (blank != request.npos) t.sent = request.substr(blank + 2);
  auto const end = answer.find("\n\n");
  for (char c : answer.substr(0, end + 2)) t.head += c == '\n' ? "\r\n" : std::string(1, c);
  t.body = answer.substr(end + 2);
  t.code = std::stoi(t.head.substr(9, 3));
  t.chunked = t.head.find("Transfer-Encoding: chunked") != t.head.npos;
  if (auto const at = t.head.find("Content-Length: "); at != t.head.npos)
    t.body.resize(std::stoul(t.head.substr(at + 16)));
  return t;
}

inline std::vector<transcript> read_transcripts(std::filesystem::path const& folder) {
  std::vector<transcript> all;
  for (auto const& entry : std::filesystem::directory_iterator(folder))
    all.push_back(read_transcript(entry.path()));
  return all;
}

}  // namespace test
