#include "control/metrics_page.hpp"

#include "metrics/exposition.hpp"

namespace adit::control {
namespace {

using metrics::Kind;
using metrics::Labels;
using metrics::Page;

Labels with(Labels labels, std::string name, std::string value) {
  labels.emplace_back(std::move(name), std::move(value));
  return labels;
}

void addDrops(Page& page, const std::string& family, std::string help, const Labels& labels,
              const std::vector<std::pair<std::string, std::uint64_t>>& drops) {
  metrics::Family& dropped = page.family(family, Kind::Counter, std::move(help));
  for (const auto& [reason, count] : drops) {
    dropped.add(with(labels, "reason", reason), count);
  }
}

void addInterface(Page& page, const DeviceSnapshot& device, const Labels& labels) {
  page.family("adit_interface_info", Kind::Gauge, "What moves the packets; always 1.")
      .add(with(labels, "backend", device.backend), std::uint64_t{1});
  page.family("adit_interface_mtu_bytes", Kind::Gauge, "MTU of the tunnel's interface.")
      .add(labels, std::uint64_t{device.mtu});
  page.family("adit_interface_warnings", Kind::Gauge, "Warnings that adit status shows.")
      .add(labels, std::uint64_t{device.warnings.size()});
  addDrops(page, "adit_interface_dropped_packets_total",
           "Packets and datagrams that were not passed on, by reason.", labels, device.drops);
  metrics::Family& speed = page.family("adit_interface_cipher_bytes_per_second", Kind::Gauge,
                                       "Speed of a cipher on one core, as measured at the start.");
  for (const crypto::Suite suite : crypto::kSuites) {
    constexpr std::uint64_t kMega = 1'000'000;
    speed.add(with(labels, "cipher", std::string(crypto::suiteName(suite))),
              device.suiteSpeeds[static_cast<std::size_t>(suite)] * kMega);
  }
  metrics::Family& trouble = page.family("adit_handshake_trouble", Kind::Gauge,
                                         "Handshakes fail for a reason that is known; always 1.");
  for (const TroubleSnapshot& one : device.troubles) {
    trouble.add(with(with(labels, "kind", one.kind), "name", one.peer), std::uint64_t{1});
  }
}

void addPeer(Page& page, const PeerSnapshot& peer, const Labels& labels) {
  page.family("adit_peer_receive_bytes_total", Kind::Counter,
              "Bytes of UDP payload received from the peer.")
      .add(labels, peer.rxBytes);
  page.family("adit_peer_transmit_bytes_total", Kind::Counter,
              "Bytes of UDP payload sent to the peer.")
      .add(labels, peer.txBytes);
  page.family("adit_peer_handshakes_total", Kind::Counter, "Handshakes that were finished.")
      .add(labels, peer.handshakes);
  page.family("adit_peer_refused_timestamps_total", Kind::Counter,
              "Handshakes refused because the peer's clock went back.")
      .add(labels, peer.clockBehind);
  page.family("adit_peer_last_handshake_timestamp_seconds", Kind::Gauge,
              "When the last handshake was finished, seconds since the epoch; 0 for never.")
      .add(labels, std::chrono::duration<double>(peer.lastHandshake).count());
  page.family("adit_peer_unanswered_seconds", Kind::Gauge,
              "How long our handshakes have not been answered; 0 while they are.")
      .add(labels,
           static_cast<std::uint64_t>(peer.unanswered.value_or(std::chrono::seconds(0)).count()));
  addDrops(page, "adit_peer_dropped_packets_total",
           "Packets and datagrams of the peer that were not passed on, by reason.", labels,
           peer.drops);
  if (peer.suite) {
    page.family("adit_peer_session_info", Kind::Gauge, "The running session; always 1.")
        .add(with(labels, "cipher", std::string(crypto::suiteName(*peer.suite))), std::uint64_t{1});
  }
}

void addMap(Page& page, const MapSnapshot& map, const Labels& labels) {
  page.family("adit_map_active", Kind::Gauge,
              "Whether the mapping is in the kernel's rules: 1 or 0.")
      .add(labels, std::uint64_t{map.active ? 1U : 0U});
  if (!map.usage) return;
  const nat::MapUsage& usage = *map.usage;
  page.family("adit_map_connections_total", Kind::Counter, "Connections through the mapping.")
      .add(labels, usage.connections);
  page.family("adit_map_open_connections", Kind::Gauge, "Connections that are open now.")
      .add(labels, usage.open);
  page.family("adit_map_receive_bytes_total", Kind::Counter,
              "Bytes of IP packets from clients to the target.")
      .add(labels, usage.bytesIn);
  page.family("adit_map_transmit_bytes_total", Kind::Counter,
              "Bytes of IP packets from the target to clients.")
      .add(labels, usage.bytesOut);
  page.family("adit_map_receive_packets_total", Kind::Counter,
              "IP packets from clients to the target.")
      .add(labels, usage.packetsIn);
  page.family("adit_map_transmit_packets_total", Kind::Counter,
              "IP packets from the target to clients.")
      .add(labels, usage.packetsOut);
}

}  // namespace

std::string metricsPage(const DeviceSnapshot& device) {
  Page page;
  const Labels interface {
    { "interface", device.name }
  };
  addInterface(page, device, interface);
  for (const PeerSnapshot& peer : device.peers) {
    addPeer(page, peer,
            with(with(interface, "public_key", peer.publicKey.toBase64()), "name", peer.name));
  }
  for (const MapSnapshot& map : device.maps) {
    addMap(page, map, with(with(interface, "listen", map.listen), "target", map.target));
  }
  return page.text();
}

}  // namespace adit::control
