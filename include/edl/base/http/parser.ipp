// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <optional>

#include "edl/base/http/client/errors.hpp"
#include "edl/base/http/parser.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::http {

namespace detail {

// Beast asserts that it receives all of "0\r\n\r\n" if the first chunk is the last one.
inline bool may_be_empty_body(std::string_view chunks) {
  return chunks.size() < 5 && chunks.starts_with('0');
}

/// Collects the parts of a message as Beast's parser finds them; without trailers.
template <bool IsRequest>
struct message_reader : boost::beast::http::basic_parser<IsRequest> {
  using error_code = boost::beast::error_code;
  using text = boost::beast::string_view;
  static std::string_view view_of(text t) { return {t.data(), t.size()}; }

  explicit message_reader(fields& into) : headers(into) {}

  void on_field_impl(boost::beast::http::field, text name, text value, error_code&) override {
    if (!this->is_header_done()) headers.emplace_back(lower(view_of(name)), view_of(value));
  }
  std::size_t on_chunk_body_impl(std::uint64_t, text body, error_code& failed) override {
    return this->on_body_impl(body, failed);
  }
  void on_request_impl(boost::beast::http::verb, text, text, int, error_code&) override {}
  void on_response_impl(int, text, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  void on_chunk_header_impl(std::uint64_t, text, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  fields& headers;
};

}  // namespace detail

struct request_parser::state final : detail::message_reader<true> {
  state() : message_reader(head.headers) {}

  void on_request_impl(boost::beast::http::verb, text method, text address, int v, error_code&) override {
    head.method = view_of(method);
    target = view_of(address);
    version = v;
    headers.reserve(8);
  }
  void on_body_init_impl(boost::optional<std::uint64_t> const& size, error_code&) override {
    head.body.reserve(std::size_t(std::min<std::uint64_t>(size.value_or(0), most_reserved)));
  }
  std::size_t on_body_impl(text body, error_code&) override {
    head.body.append(body.data(), body.size());
    return body.size();
  }

  static constexpr std::uint64_t most_reserved = 256 << 10;  // for a length that is only claimed so far
  std::size_t header_most = 0, body_most = 0;
  int version = 11;
  bool headed = false, expects = false;
  std::string target;
  request head;
};

EDL_INLINE request_parser::request_parser(std::size_t header_limit, std::size_t body_limit)
    : state_(std::make_unique<state>()) {
  state_->header_most = header_limit;
  state_->body_most = body_limit;
  state_->header_limit(std::uint32_t(header_limit));
  state_->body_limit(body_limit);
  state_->eager(true);
}
EDL_INLINE request_parser::request_parser(request_parser&&) noexcept = default;
EDL_INLINE request_parser::~request_parser() = default;

EDL_INLINE std::size_t request_parser::feed(std::string_view bytes) {
  namespace beast = boost::beast::http;
  auto& p = *state_;
  std::size_t taken = 0;
  while (!p.is_done()) {
    if (p.is_header_done() && p.chunked() && p.head.body.empty() &&
        detail::may_be_empty_body(bytes.substr(taken)))
      break;
    boost::beast::error_code failed;
    taken += p.put(boost::asio::const_buffer(bytes.data() + taken, bytes.size() - taken), failed);
    // A length above the limit also comes with the head, so the request is known.
    if (!state_->headed && (p.is_header_done() || failed == beast::error::body_limit)) read_head();
    if (failed == beast::error::need_more) break;
    if (failed == beast::error::header_limit)
      throw failure(431, fmt::format("the request's head is longer than {} bytes", p.header_most));
    if (failed == beast::error::body_limit)
      throw failure(413, fmt::format("the body is longer than {} bytes", p.body_most));
    if (failed) throw failure(400, fmt::format("this is not a request of HTTP/1.1: {}", failed.message()));
    if (taken == bytes.size()) break;
  }
  return taken;
}

/// The end of the body must be unambiguous, or a part of it could be taken for the next request (RFC 9112,
/// 6.1 and 6.3).
EDL_INLINE void request_parser::check_framing() const {
  request const& head = state_->head;
  auto const count = [&](std::string_view name) {
    return std::ranges::count_if(head.headers, [&](auto& f) { return f.first == name; });
  };
  auto const codings = count("transfer-encoding"), lengths = count("content-length");
  if (codings > 1 || lengths > 1)
    throw failure(400, fmt::format("the request has the field '{}' more than once",
                                   codings > 1 ? "Transfer-Encoding" : "Content-Length"));
  if (lengths == 1) {
    auto const length = head.field("content-length");
    if (length.empty() || length.find_first_not_of("0123456789") != length.npos)
      throw failure(400, "the request's field 'Content-Length' is not a number");
  }
  if (codings == 0) return;
  if (lengths > 0)
    throw failure(400, "the request has both 'Transfer-Encoding' and 'Content-Length': send one of them");
  if (state_->version < 11) throw failure(400, "'Transfer-Encoding' is not part of HTTP/1.0");
  std::string const coding = lower(head.field("transfer-encoding"));
  if (coding == "chunked") return;
  auto const last = trimmed(std::string_view(coding).substr(coding.rfind(',') + 1));
  throw failure(last == "chunked" ? 501 : 400,
                fmt::format("the request's 'Transfer-Encoding' is '{}': only 'chunked' is read",
                            printable(coding, 64)));
}

EDL_INLINE void request_parser::read_head() {
  check_framing();
  request& head = state_->head;
  std::string& target = state_->target;
  auto const hosts = std::ranges::count_if(head.headers, [](auto& f) { return f.first == "host"; });
  if (hosts > 1) throw failure(400, "the request has the field 'Host' more than once");
  if (hosts == 0 && state_->version == 11) throw failure(400, "the request has no field 'Host'");
  // The absolute form that proxies use (RFC 9112, 3.2.2).
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
    if (expected != "100-continue") throw failure(417, "'Expect' supports only 100-continue");
    state_->expects = true;
  }
  state_->headed = true;
}

EDL_INLINE bool request_parser::headed() const { return state_->headed; }
EDL_INLINE bool request_parser::done() const { return state_->headed && state_->is_done(); }
EDL_INLINE request const& request_parser::head() const { return state_->head; }
EDL_INLINE request request_parser::take() { return std::move(state_->head); }
EDL_INLINE std::size_t request_parser::held() const { return state_->head.body.size(); }
EDL_INLINE bool request_parser::keeps_alive() const { return state_->keep_alive(); }
EDL_INLINE bool request_parser::wants_continue() const { return state_->expects && !done(); }
EDL_INLINE bool request_parser::chunks() const { return state_->version >= 11; }

struct response_parser::state {
  struct reader final : detail::message_reader<false> {
    explicit reader(response_parser::state& s) : message_reader(s.headers), into(s) {
      header_limit(longest_head);
      body_limit(std::numeric_limits<std::uint64_t>::max());  // the sink enforces its own limit
    }
    void on_response_impl(int status, text, int, error_code&) override { into.code = status; }
    std::size_t on_body_impl(text body, error_code& failed) override {
      into.begun = true;
      into.enough = !(*into.take)(view_of(body));
      if (into.enough) failed = boost::beast::http::error::end_of_stream;
      return body.size();
    }
    response_parser::state& into;
  };
  static constexpr std::uint32_t longest_head = 64 << 10;

  [[noreturn]] static void refuse(std::string_view what, std::string_view text) {
    throw untrusted(fmt::format("the reply is not HTTP ({} at '{}'): is this the right server?", what,
                                printable(text.substr(0, text.find_first_of("\r\n")), 80)));
  }
  void read_head();

  fields headers;
  int code = 0;
  bool headed = false, begun = false, enough = false, surplus = false;
  sink const* take = nullptr;
  std::size_t interim = 0;  // bytes of interim answers
  std::string rest;         // the beginning of a unit that Beast reads as a whole: a head, a chunk's line
  std::optional<reader> now{std::in_place, *this};
};

EDL_INLINE response_parser::response_parser() : state_(std::make_unique<state>()) {}
EDL_INLINE response_parser::response_parser(response_parser&&) noexcept = default;
EDL_INLINE response_parser& response_parser::operator=(response_parser&&) noexcept = default;
EDL_INLINE response_parser::~response_parser() = default;

EDL_INLINE void response_parser::feed(std::string_view bytes, sink const& take) {
  state& s = *state_;
  s.take = &take;
  std::string const waiting = s.rest.empty() ? std::string() : std::exchange(s.rest, {}).append(bytes);
  if (!waiting.empty()) bytes = waiting;
  while (!bytes.empty() && !done()) {
    constexpr std::string_view http = "HTTP/1.";
    auto const size = std::min(http.size(), bytes.size());  // a peer of another protocol may send less
    if (s.code == 0 && bytes.substr(0, size) != http.substr(0, size)) s.refuse("bad version", bytes);
    if (s.headed && s.now->chunked() && !s.begun && detail::may_be_empty_body(bytes)) break;
    boost::beast::error_code failed;
    auto const taken = s.now->put(boost::asio::const_buffer(bytes.data(), bytes.size()), failed);
    bool const more = failed == boost::beast::http::error::need_more;
    if (failed && !more && !s.enough) s.refuse(failed.message(), bytes);
    bytes.remove_prefix(taken);
    if (more || s.enough) break;
    if (s.headed || !s.now->is_header_done()) continue;
    s.interim += taken;
    if (s.interim > s.longest_head) s.refuse("header limit exceeded", bytes);
    s.read_head();
  }
  if (done())
    s.surplus |= !bytes.empty();
  else if (bytes.size() > s.longest_head)
    s.refuse("header limit exceeded", bytes);
  else
    s.rest = bytes;
}

EDL_INLINE void response_parser::state::read_head() {
  if (code < 100) refuse("bad status", std::to_string(code));
  if (code < 200) {
    headers.clear();
    code = 0;
    now.emplace(*this);
    return;
  }
  headed = true;
  for (auto const& [name, value] : headers)
    if (name == "transfer-encoding" && lower(value) != "chunked") refuse("unknown transfer encoding", value);
}

EDL_INLINE bool response_parser::end() {
  boost::beast::error_code cut;
  if (headed() && !done()) state_->now->put_eof(cut);
  state_->surplus = true;
  return done() && !cut;
}

EDL_INLINE bool response_parser::headed() const { return state_->headed; }
EDL_INLINE bool response_parser::done() const {
  return state_->enough || (state_->headed && state_->now->is_done());
}
EDL_INLINE int response_parser::code() const { return state_->code; }
EDL_INLINE bool response_parser::reusable() const {
  return done() && !state_->enough && !state_->surplus && state_->now->keep_alive();
}
EDL_INLINE std::string_view response_parser::field(std::string_view name) const {
  return http::field(state_->headers, name);
}

}  // namespace edl::http
