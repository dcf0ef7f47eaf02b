// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"
#include "edl/job/http/request_parser.hpp"

namespace edl::http {

struct request_parser::state {
  boost::beast::http::request_parser<boost::beast::http::string_body> parser;
  std::size_t header_limit, body_limit;
  bool headed = false, expects = false;
  request head;
};

EDL_INLINE request_parser::request_parser(std::size_t header_limit, std::size_t body_limit)
    : state_(std::make_unique<state>()) {
  state_->header_limit = header_limit;
  state_->body_limit = body_limit;
  state_->parser.header_limit(std::uint32_t(header_limit));
  state_->parser.body_limit(body_limit);
}
EDL_INLINE request_parser::request_parser(request_parser&&) noexcept = default;
EDL_INLINE request_parser::~request_parser() = default;

EDL_INLINE std::size_t request_parser::feed(std::string_view bytes) {
  namespace beast = boost::beast::http;
  auto& p = state_->parser;
  std::size_t taken = 0;
  while (!p.is_done()) {
    boost::beast::error_code failed;
    taken += p.put(boost::asio::const_buffer(bytes.data() + taken, bytes.size() - taken), failed);
    if (!state_->headed && p.is_header_done()) read_head();
    if (failed == beast::error::need_more) break;
    if (failed == beast::error::header_limit)
      throw failure(431, fmt::format("the request's head is longer than {} bytes", state_->header_limit));
    if (failed == beast::error::body_limit)
      throw failure(413, fmt::format("the body is longer than {} bytes", state_->body_limit));
    if (failed) throw failure(400, fmt::format("this is no request of HTTP/1.1: {}", failed.message()));
    if (taken == bytes.size()) break;
  }
  return taken;
}

EDL_INLINE void request_parser::read_head() {
  auto const& message = state_->parser.get();
  request& head = state_->head;
  auto const text = [](auto const& view) { return std::string(view.data(), view.size()); };
  head.method = text(message.method_string());
  int hosts = 0;
  for (auto const& field : message) {
    std::string name = lower(text(field.name_string()));
    hosts += name == "host";
    head.headers.emplace_back(std::move(name), text(field.value()));
  }
  if (hosts == 0 && message.version() == 11) throw failure(400, "the request has no field 'Host'");
  if (hosts > 1) throw failure(400, "the request has the field 'Host' more than once");
  std::string target = text(message.target());
  // The form of proxies (RFC 9112, 3.2.2).
  for (std::string_view const scheme : {"http://", "https://"})
    if (lower(target.substr(0, scheme.size())) == scheme) {
      auto const path = target.find('/', scheme.size());
      target = path == target.npos ? "/" : target.substr(path);
    }
  if (!target.starts_with('/')) throw failure(400, "the request's address does not begin with '/'");
  auto const end = target.find_first_of("?#");
  head.path = target.substr(0, end);
  if (end != target.npos && target[end] == '?')
    head.query = target.substr(end + 1, target.find('#') - end - 1);
  if (auto const expected = lower(head.field("expect")); !expected.empty()) {
    if (expected != "100-continue") throw failure(417, "of 'Expect' only 100-continue is known");
    state_->expects = true;
  }
  state_->headed = true;
}

EDL_INLINE bool request_parser::headed() const { return state_->headed; }
EDL_INLINE bool request_parser::done() const { return state_->headed && state_->parser.is_done(); }
EDL_INLINE request const& request_parser::head() const { return state_->head; }
EDL_INLINE request request_parser::take() {
  state_->head.body = std::move(state_->parser.get().body());
  return std::move(state_->head);
}
EDL_INLINE std::size_t request_parser::held() const { return state_->parser.get().body().size(); }
EDL_INLINE bool request_parser::keeps_alive() const { return state_->parser.get().keep_alive(); }
EDL_INLINE bool request_parser::wants_continue() const { return state_->expects && !done(); }
EDL_INLINE bool request_parser::chunks() const { return state_->parser.get().version() >= 11; }

}  // namespace edl::http
