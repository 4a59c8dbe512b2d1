#include "metrics/exposition.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace adit::metrics;

TEST_CASE("exposition: families with their help, type and samples") {
  Page page;
  Family& received = page.family("adit_peer_receive_bytes_total", Kind::Counter, "Bytes received.");
  received.add({{"interface", "adit0"}, {"name", "nas"}},
               std::numeric_limits<std::uint64_t>::max());
  Family& warnings = page.family("adit_warnings", Kind::Gauge, "A back\\slash\nand a line.");
  warnings.add({}, std::uint64_t{2});
  page.family("adit_empty", Kind::Gauge, "Nothing.");
  // The same family again, after another: its samples stay together.
  page.family("adit_peer_receive_bytes_total", Kind::Counter, "ignored").add({}, std::uint64_t{1});
  CHECK(page.text() ==
        "# HELP adit_peer_receive_bytes_total Bytes received.\n"
        "# TYPE adit_peer_receive_bytes_total counter\n"
        "adit_peer_receive_bytes_total{interface=\"adit0\",name=\"nas\"} 18446744073709551615\n"
        "adit_peer_receive_bytes_total 1\n"
        "# HELP adit_warnings A back\\\\slash\\nand a line.\n"
        "# TYPE adit_warnings gauge\n"
        "adit_warnings 2\n");
}

TEST_CASE("exposition: numbers that are not whole") {
  Page page;
  Family& seconds = page.family("adit_age_seconds", Kind::Gauge, "Age.");
  seconds.add({}, 0.25);
  seconds.add({}, 1764544000.5);
  seconds.add({}, std::numeric_limits<double>::infinity());
  seconds.add({}, std::numeric_limits<double>::quiet_NaN());
  const std::string text = page.text();
  CHECK(
      text.ends_with("adit_age_seconds 0.25\nadit_age_seconds 1764544000.5\n"
                     "adit_age_seconds +Inf\nadit_age_seconds NaN\n"));
}

TEST_CASE("exposition: values of labels may be anything") {
  CHECK(escapedLabel("plain") == "plain");
  CHECK(escapedLabel("a\\b\"c\nd") == "a\\\\b\\\"c\\nd");
  CHECK(escapedLabel("Küche €") == "Küche €");
  // No line of the text can be made up by a name.
  CHECK(escapedLabel("x\"} 1\nadit_forged 2").find('\n') == std::string::npos);
  const std::string replaced = "\xef\xbf\xbd";
  CHECK(escapedLabel("a\xff") == "a" + replaced);
  CHECK(escapedLabel("\xc0\xaf") == replaced + replaced);
  CHECK(escapedLabel("\xed\xa0\x80") == replaced + replaced + replaced);
  CHECK(escapedLabel("\xe2\x82") == replaced + replaced);
}
