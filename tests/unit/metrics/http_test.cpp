#include "metrics/http.hpp"

#include <catch2/catch.hpp>

using namespace adit::metrics;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

std::string page() {
  return "adit_warnings 0\n";
}

std::string ask(std::string_view request, Hosts hosts = Hosts::Loopback) {
  return answerTo(request, hosts, page).value_or("");
}

std::string from(std::string_view host) {
  return ask("GET /metrics HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
}

}  // namespace

TEST_CASE("http: a scrape") {
  const std::string answer = from("127.0.0.1:9586");
  CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  CHECK_THAT(answer, Contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n") &&
                         Contains("Content-Length: 16\r\n") &&
                         Contains("Connection: close\r\n\r\nadit_warnings 0\n"));
  const std::string head = ask("HEAD /metrics?x=1 HTTP/1.1\r\nhost:localhost\r\n\r\n");
  CHECK_THAT(head, Contains("200 OK") && Contains("Content-Length: 16"));
  CHECK(head.ends_with("\r\n\r\n"));
  CHECK_THAT(ask("GET /metrics HTTP/1.0\r\n\r\n"), Contains("200 OK"));
}

TEST_CASE("http: nothing is answered before the head is complete") {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: [::1]:9586\r\n\r\n";
  for (std::size_t length = 0; length < request.size(); ++length) {
    CHECK_FALSE(answerTo(request.substr(0, length), Hosts::Loopback, page));
  }
  CHECK_THAT(ask(request), Contains("200 OK"));
}

TEST_CASE("http: heads that are too long") {
  CHECK_FALSE(answerTo(std::string(kMaxHead, 'a'), Hosts::Loopback, page));
  CHECK_THAT(ask(std::string(kMaxHead + 1, 'a')), Contains(" 431 "));
  const std::string field = "X: " + std::string(kMaxHead, 'a') + "\r\n";
  CHECK_THAT(ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + field + "\r\n"),
             Contains(" 431 "));
}

TEST_CASE("http: what is refused, and never makes a page") {
  const auto refused = [](std::string_view request) {
    return answerTo(request, Hosts::Loopback,
                    [] {
                      FAIL("a page was made");
                      return std::string();
                    })
        .value_or("nothing");
  };
  CHECK_THAT(refused("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Contains(" 404 "));
  CHECK_THAT(refused("GET /metricsX HTTP/1.1\r\nHost: localhost\r\n\r\n"), Contains(" 404 "));
  CHECK_THAT(refused("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
             Contains(" 405 ") && Contains("Allow: GET, HEAD\r\n"));
  CHECK_THAT(refused("GET /metrics HTTP/2.0\r\nHost: localhost\r\n\r\n"), Contains(" 505 "));
  for (const std::string bad :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
        "GET /metrics HTTP/1.1\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost localhost\r\n\r\n",
        "GET /metrics HTTP/1.1\r\n: x\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /metrics FTP\r\n\r\n"}) {
    CAPTURE(bad);
    CHECK_THAT(refused(bad), Contains(" 400 "));
  }
}

TEST_CASE("http: a page in a browser cannot name us by a host of its own") {
  for (const std::string host :
       {"localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:9586", "[::1]:1"}) {
    CHECK_THAT(from(host), Contains("200 OK"));
  }
  for (const std::string host :
       {"evil.example", "evil.example:9586", "192.0.2.1", "localhost.evil.example", "[2001:db8::1]",
        "[::1", "", "127.0.0.1.evil.example"}) {
    CAPTURE(host);
    CHECK_THAT(from(host), Contains(" 403 "));
  }
  CHECK_THAT(ask("GET /metrics HTTP/1.1\r\nHost: any\r\n\r\n", Hosts::Any), Contains("200 OK"));
}
