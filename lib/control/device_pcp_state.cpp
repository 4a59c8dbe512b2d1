#include "control/device_pcp_state.hpp"

#include <sodium.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace adit::control {
namespace {

using nlohmann::json;
using std::chrono::nanoseconds;

std::string nonceText(const pcp::Nonce& nonce) {
  std::string text(nonce.size() * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), nonce.data(), nonce.size());
  text.pop_back();
  return text;
}

bool nonceFromText(const std::string& text, pcp::Nonce& nonce) {
  std::size_t length = 0;
  return sodium_hex2bin(nonce.data(), nonce.size(), text.data(), text.size(), nullptr, &length,
                        nullptr) == 0 &&
         length == nonce.size() && text.size() == 2 * nonce.size();
}

json toJson(const pcp::Lease& lease, const Clock& clock) {
  json allow = json::array();
  for (const Prefix& network : lease.allow) {
    allow.push_back(network.toString());
  }
  const nanoseconds left = lease.expires - clock.now();
  return {{"peer", lease.peer},
          {"client", lease.client.toString()},
          {"target", lease.target.toString()},
          {"protocol", lease.protocol},
          {"internal", lease.firstInternal},
          {"external", lease.firstExternal},
          {"size", lease.size},
          {"nonce", nonceText(lease.nonce)},
          {"nat_pmp", lease.natPmp},
          {"allow", allow},
          {"masquerade", lease.masquerade},
          {"hairpin", lease.hairpin},
          {"rate", lease.rate},
          {"ends", (clock.realTime() + left).count()},
          {"ends_boot", lease.expires.count()},
          {"updated_boot", lease.updated.count()}};
}

std::optional<pcp::Lease> fromJson(const json& object, bool sameBoot, const Clock& clock) {
  pcp::Lease lease;
  lease.peer = object.at("peer").get<std::string>();
  const auto client = Endpoint::parse(object.at("client").get<std::string>());
  const auto target = IpAddress::parse(object.at("target").get<std::string>());
  lease.protocol = object.at("protocol").get<std::uint8_t>();
  lease.firstInternal = object.at("internal").get<std::uint16_t>();
  lease.firstExternal = object.at("external").get<std::uint16_t>();
  lease.size = object.at("size").get<std::uint16_t>();
  lease.natPmp = object.at("nat_pmp").get<bool>();
  lease.masquerade = object.at("masquerade").get<bool>();
  lease.hairpin = object.at("hairpin").get<bool>();
  lease.rate = object.at("rate").get<std::uint64_t>();
  for (const json& text : object.at("allow")) {
    const auto network = Prefix::parse(text.get<std::string>());
    if (!network) {
      return std::nullopt;
    }
    lease.allow.push_back(*network);
  }
  // Not negative, so that no difference of them overflows.
  const auto ends = [&](const char* name) {
    return nanoseconds(std::max<std::int64_t>(0, object.at(name).get<std::int64_t>()));
  };
  const nanoseconds realEnd = ends("ends");
  const nanoseconds bootEnd = ends("ends_boot");
  lease.expires = sameBoot ? bootEnd : clock.now() + (realEnd - clock.realTime());
  lease.updated =
      sameBoot ? nanoseconds(object.at("updated_boot").get<std::int64_t>()) : nanoseconds{};
  const bool sound =
      client && target && (lease.protocol == pcp::kTcp || lease.protocol == pcp::kUdp) &&
      lease.size != 0 && lease.firstInternal != 0 && lease.firstExternal != 0 &&
      lease.firstInternal + lease.size <= 65536 && lease.firstExternal + lease.size <= 65536 &&
      nonceFromText(object.at("nonce").get<std::string>(), lease.nonce);
  if (!sound) {
    return std::nullopt;
  }
  lease.client = *client;
  lease.target = *target;
  return lease;
}

}  // namespace

std::string leasesToText(const std::vector<pcp::Lease>& leases, std::optional<BootTime> epochStart,
                         const Clock& clock) {
  json object = {{"leases", json::array()}};
  if (epochStart) {
    object["epoch_start"] = epochStart->count();
  }
  for (const pcp::Lease& lease : leases) {
    object["leases"].push_back(toJson(lease, clock));
  }
  return object.dump(1) + "\n";
}

Result<StoredLeases> leasesFromText(std::string_view text, const Clock& clock) {
  StoredLeases stored;
  try {
    const json object = json::parse(text);
    if (object.contains("epoch_start")) {
      const BootTime start(object.at("epoch_start").get<std::int64_t>());
      // The boot-time clock starts anew with the machine.
      if (start >= BootTime{} && start <= clock.now()) {
        stored.epochStart = start;
      }
    }
    for (const json& entry : object.at("leases")) {
      const auto lease = fromJson(entry, stored.epochStart.has_value(), clock);
      if (!lease) {
        return fail("a lease is damaged");
      }
      stored.leases.push_back(*lease);
    }
  } catch (const json::exception&) {
    return fail("the list of leases is damaged");
  }
  return stored;
}

}  // namespace adit::control
