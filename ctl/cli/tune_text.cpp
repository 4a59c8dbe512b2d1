#include "cli/tune_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "cli/table.hpp"

namespace adit::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Values of the kernel have tabs between numbers.
std::string onOneLine(std::string text) {
  std::ranges::replace(text, '\t', ' ');
  return text.empty() ? "-" : text;
}

std::string_view outcomeName(tune::Outcome outcome) {
  switch (outcome) {
    case tune::Outcome::Done:
      return "done";
    case tune::Outcome::Already:
      return "already";
    case tune::Outcome::Refused:
      return "refused";
    case tune::Outcome::Failed:
      return "failed";
  }
  return "";
}

}  // namespace

std::string formatPlan(const tune::Plan& plan) {
  std::vector<Row> rows{{"FILE", "OLD", "NEW", "WHY"}};
  for (const tune::Item& item : plan.items) {
    if (!item.changes()) continue;
    rows.push_back(
        {tune::shownPath(item.path), onOneLine(item.current), onOneLine(item.wanted), item.why});
  }
  std::string text = rows.size() > 1 ? table(rows) : std::string("Nothing is to be changed.\n");
  for (const std::string& remark : plan.remarks) {
    text += fmt::format("\nnote: {}\n", remark);
  }
  return text;
}

Json planToJson(const tune::Plan& plan) {
  Json json{{"changes", Json::array()}, {"notes", plan.remarks}};
  for (const tune::Item& item : plan.items) {
    if (!item.changes()) continue;
    json["changes"].push_back({{"file", tune::shownPath(item.path)},
                               {"old", item.current},
                               {"new", item.wanted},
                               {"why", item.why}});
  }
  return json;
}

std::string formatResult(const tune::ItemResult& result) {
  const tune::Item& item = result.item;
  const std::string& now = result.taken.empty() ? item.wanted : result.taken;
  std::string text =
      fmt::format("{:<8} {}: {} -> {}", outcomeName(result.outcome), tune::shownPath(item.path),
                  onOneLine(item.current), onOneLine(now));
  if (!result.effective.empty()) text += fmt::format(", effective {}", result.effective);
  if (!result.reason.empty()) text += fmt::format(" ({})", result.reason);
  return text + '\n';
}

Json reportToJson(const tune::ApplyReport& report) {
  Json json{{"ok", report.ok()},
            {"results", Json::array()},
            {"warnings", report.warnings},
            {"notes", report.remarks}};
  for (const tune::ItemResult& result : report.results) {
    json["results"].push_back({{"file", tune::shownPath(result.item.path)},
                               {"old", result.item.current},
                               {"new", result.taken.empty() ? result.item.wanted : result.taken},
                               {"result", outcomeName(result.outcome)},
                               {"reason", result.reason},
                               {"effective", result.effective}});
  }
  return json;
}

std::string formatStanding(const std::vector<TuneStanding>& all) {
  std::string text;
  for (const TuneStanding& each : all) {
    const auto drifted =
        static_cast<std::size_t>(std::ranges::count(each.files, false, &tune::Standing::holds));
    text += fmt::format("{}{}: {} files, {}\n", text.empty() ? "" : "\n", each.keeper,
                        each.files.size(),
                        drifted == 0 ? "all hold" : fmt::format("{} do not hold", drifted));
    std::vector<Row> rows{{"FILE", "BEFORE", "SET TO", "NOW", "STATE"}};
    for (const tune::Standing& file : each.files) {
      const std::string effective =
          file.effective.empty() ? "" : fmt::format(" (effective {})", file.effective);
      rows.push_back({tune::shownPath(file.path), onOneLine(file.old), onOneLine(file.written),
                      onOneLine(file.current) + effective,
                      file.holds             ? "holds"
                      : file.current.empty() ? "gone"
                                             : "changed by somebody else"});
    }
    text += table(rows);
  }
  return text.empty() ? "Nothing is tuned.\n" : text;
}

Json standingToJson(const std::vector<TuneStanding>& all) {
  Json json = Json::array();
  for (const TuneStanding& each : all) {
    Json files = Json::array();
    for (const tune::Standing& file : each.files) {
      files.push_back({{"file", tune::shownPath(file.path)},
                       {"before", file.old},
                       {"set_to", file.written},
                       {"now", file.current},
                       {"effective", file.effective},
                       {"holds", file.holds}});
    }
    json.push_back({{"keeper", each.keeper}, {"files", std::move(files)}});
  }
  return json;
}

Result<std::chrono::microseconds> parseDelay(std::string_view text) {
  struct Unit {
    std::string_view name;
    double microseconds;
  };
  static constexpr std::array<Unit, 3> kUnits{{{"us", 1}, {"ms", 1e3}, {"s", 1e6}}};
  constexpr double kLongest = 60e6;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view unit(stopped, static_cast<std::size_t>(end - stopped));
  const auto* found = std::ranges::find(kUnits, unit, &Unit::name);
  const bool good = error == std::errc() && found != kUnits.end() && number > 0 &&
                    number * found->microseconds <= kLongest;
  if (!good) {
    return fail(
        "\"{}\" is not a delay of up to a minute; write a number with us, ms or s, as in "
        "40ms",
        text);
  }
  return std::chrono::microseconds(std::llround(number * found->microseconds));
}

}  // namespace adit::cli
