#include "metrics/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "util/address.hpp"

namespace adit::metrics {
namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr std::string_view kExposition = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kPlain = "text/plain; charset=utf-8";

struct Request {
  std::string_view method;
  std::string_view target;
  std::string_view version;
  /// Empty for none.
  std::string_view host;
  unsigned hosts = 0;
};

std::string answer(std::string_view status, std::string_view type, std::string_view body,
                   bool withBody = true, std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n{}Connection: close\r\n\r\n{}",
      status, type, body.size(), more, withBody ? body : "");
}

std::string refusal(std::string_view status, std::string_view more = "") {
  return answer(status, kPlain, fmt::format("{}\n", status), true, more);
}

bool sameIgnoringCase(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

std::string_view withoutBlanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Visible ASCII, as names of methods, targets and fields are.
bool isVisible(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

bool parseField(std::string_view line, Request& request) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !isVisible(line.substr(0, colon))) return false;
  if (sameIgnoringCase(line.substr(0, colon), "host")) {
    request.host = withoutBlanks(line.substr(colon + 1));
    ++request.hosts;
  }
  return true;
}

/// Nothing where the head is malformed. `head` is without the empty line that ends it.
std::optional<Request> parse(std::string_view head) {
  Request request;
  const auto end = std::min(head.find("\r\n"), head.size());
  const std::string_view line = head.substr(0, end);
  const auto first = line.find(' ');
  const auto second = line.rfind(' ');
  if (first == std::string_view::npos || first == second) return std::nullopt;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, second - first - 1);
  request.version = line.substr(second + 1);
  if (!isVisible(request.method) || !isVisible(request.target) ||
      !request.version.starts_with("HTTP/")) {
    return std::nullopt;
  }
  head.remove_prefix(std::min(head.size(), end + 2));
  while (!head.empty()) {
    const auto next = std::min(head.find("\r\n"), head.size());
    if (!parseField(head.substr(0, next), request)) return std::nullopt;
    head.remove_prefix(std::min(head.size(), next + 2));
  }
  return request;
}

/// "127.0.0.1:9586", "[::1]", "localhost:9586"
bool namesLoopback(std::string_view host) {
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    const auto address = IpAddress::parse(host.substr(1, end - 1));
    return end != std::string_view::npos && address && address->isLoopback();
  }
  const std::string_view name = host.substr(0, host.find(':'));
  const auto address = IpAddress::parse(name);
  return sameIgnoringCase(name, "localhost") || (address && address->isLoopback());
}

}  // namespace

std::optional<std::string> answerTo(std::string_view received, Hosts hosts,
                                    const std::function<std::string()>& page) {
  const auto end = received.find(kEndOfHead);
  if (end == std::string_view::npos || end > kMaxHead) {
    if (received.size() <= kMaxHead) return std::nullopt;
    return refusal("431 Request Header Fields Too Large");
  }
  const auto request = parse(received.substr(0, end));
  if (!request || request->hosts > 1) return refusal("400 Bad Request");
  if (request->version != "HTTP/1.1" && request->version != "HTTP/1.0") {
    return refusal("505 HTTP Version Not Supported");
  }
  // RFC 9112, section 3.2: a request of version 1.1 has a host.
  if (request->hosts == 0 && request->version == "HTTP/1.1") return refusal("400 Bad Request");
  if (hosts == Hosts::Loopback && request->hosts == 1 && !namesLoopback(request->host)) {
    return refusal("403 Forbidden");
  }
  const std::string_view path = request->target.substr(0, request->target.find('?'));
  if (path != "/metrics") return refusal("404 Not Found");
  const bool head = request->method == "HEAD";
  if (!head && request->method != "GET") {
    return refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
  }
  return answer("200 OK", kExposition, page(), !head);
}

}  // namespace adit::metrics
