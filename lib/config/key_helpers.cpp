#include "config/key_helpers.hpp"

namespace adit::config {
namespace {

PortGrant::Protocol grantProtocol(const ProtocolPorts& match) {
  if (match.tcp && match.udp) return PortGrant::Protocol::Both;
  return match.tcp ? PortGrant::Protocol::Tcp : PortGrant::Protocol::Udp;
}

}  // namespace

bool storePublicKey(const EntryContext& c, crypto::PublicKey& target) {
  if (const auto bad = checkKeyText(c.value)) {
    c.error(bad->offset, bad->message);
    return false;
  }
  const auto key = crypto::PublicKey::fromBase64(c.value);
  if (!key || key->isZero()) {
    c.error(0, "the public key is all zero; write the one that `adit pubkey` prints on the peer");
    return false;
  }
  target = *key;
  return true;
}

void storeGrants(const EntryContext& c, std::vector<PortGrant>& grants, bool& thirdParty) {
  forEachItem(c, Separator::Comma, [&](const Item& item) {
    if (equalIgnoringCase(item.text, "third-party")) {
      thirdParty = true;
      return;
    }
    const auto match = parseProtocolPorts(item.text);
    if (!match) {
      c.error(item.offset + match.error().offset, match.error().message);
      return;
    }
    grants.push_back({grantProtocol(*match), match->ports.first, match->ports.last});
  });
}

Lines grantLines(const std::vector<PortGrant>& grants, bool thirdParty) {
  std::vector<std::string> all;
  for (const PortGrant& grant : grants) {
    const bool tcp = grant.protocol != PortGrant::Protocol::Udp;
    const bool udp = grant.protocol != PortGrant::Protocol::Tcp;
    all.push_back(grant.first == grant.last
                      ? fmt::format("{}/{}", protocolName(tcp, udp), grant.first)
                      : fmt::format("{}/{}-{}", protocolName(tcp, udp), grant.first, grant.last));
  }
  if (thirdParty) {
    all.emplace_back("third-party");
  }
  return joinedText(all);
}

void storePath(const EntryContext& c, std::string& target) {
  if (!checkKeyText(c.value)) {
    c.error(0, "this is a key where the path of a file with a key belongs");
    return;
  }
  target = c.value;
}

std::optional<std::size_t> unbalancedQuote(std::string_view command) {
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const char quote = open ? command[*open] : '\0';
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != '\0') {
      if (c == quote) open.reset();
    } else if (c == '\'' || c == '"') {
      open = i;
    } else if (c == '#' && (i == 0 || command[i - 1] == ' ' || command[i - 1] == '\t')) {
      break;
    }
  }
  return open;
}

}  // namespace adit::config
