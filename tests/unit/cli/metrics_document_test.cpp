// docs/metrics.md names every metric of the page with its kind, and no other.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include "control/metrics_page.hpp"

using namespace adit;

namespace {

using Kinds = std::map<std::string, std::string>;

/// A device with one of everything.
control::DeviceSnapshot everything() {
  control::DeviceSnapshot device;
  device.drops = {{"replay", 1}};
  device.troubles.emplace_back();
  control::PeerSnapshot& peer = device.peers.emplace_back();
  peer.suite = crypto::Suite::ChaCha20Poly1305;
  peer.drops = {{"replay", 1}};
  device.maps.emplace_back().usage.emplace();
  return device;
}

Kinds kindsOf(const std::string& page) {
  static const std::regex type("# TYPE (\\S+) (\\S+)");
  Kinds kinds;
  for (std::sregex_iterator i(page.begin(), page.end(), type); i != std::sregex_iterator(); ++i) {
    kinds[(*i)[1]] = (*i)[2];
  }
  return kinds;
}

/// "| `a`, `b` | counter, gauge | ... |": one kind stands for all names.
Kinds documented() {
  std::ifstream file(std::string(ADIT_SOURCE_DIR) + "/docs/metrics.md");
  static const std::regex row(R"(\| (`adit_[^|]*) \| ([^|]*) \|.*)");
  static const std::regex word(R"([a-z_]+)");
  Kinds kinds;
  for (std::string line; std::getline(file, line);) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    const std::string names = cells[1];
    const std::string types = cells[2];
    std::sregex_iterator kind(types.begin(), types.end(), word);
    for (std::sregex_iterator i(names.begin(), names.end(), word); i != std::sregex_iterator();
         ++i) {
      kinds[i->str()] = kind->str();
      if (std::next(kind) != std::sregex_iterator()) ++kind;
    }
  }
  return kinds;
}

}  // namespace

TEST_CASE("metrics: the document and the page name the same") {
  CHECK(documented() == kindsOf(control::metricsPage(everything())));
}
