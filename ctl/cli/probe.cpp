#include "cli/probe.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>

#include "cli/probe_gate.hpp"
#include "cli/probe_packet.hpp"
#include "cli/probe_wire.hpp"

namespace adit::cli {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

struct Chosen {
  std::uint16_t port = 0;
  std::uint32_t sequence = 0;
};

Result<Chosen> choose() {
  std::array<std::uint32_t, 2> random{};
  if (::getrandom(random.data(), sizeof(random), 0) != sizeof(random)) {
    return failErrno(errno, "getrandom");
  }
  return Chosen{static_cast<std::uint16_t>(32768 + random[0] % 28000), random[1]};
}

/// Whoever answers a SYN need not wait for the rest of the handshake.
bool wantsReset(const Question& question, Echo echo) {
  return echo == Echo::Answered && question.isTcp();
}

/// Watches both ends of the path through this machine.
class Watch {
 public:
  Watch(Wire& publicSide, Wire& tunnel, const Question& question, const Path& path,
        nat::Protocol protocol)
      : public_(publicSide),
        tunnel_(tunnel),
        question_(question),
        path_(path),
        protocol_(protocol) {}

  /// The packet has come in by the public NIC, where a capture shows it first.
  [[nodiscard]] bool hasBegun() const { return begun_; }
  [[nodiscard]] const Journey& journey() const { return journey_; }

  /// Until there is an answer or the time is over.
  void until(Deadline end) {
    while (journey_.echo == Echo::Silent && waitFor({&public_, &tunnel_}, end)) {
      while (const auto seen = tunnel_.next()) {
        noteTunnel(*seen);
      }
      while (const auto seen = public_.next()) {
        notePublic(*seen);
      }
    }
  }

 private:
  void noteTunnel(const Wire::Seen& seen) {
    if (seen.outgoing) {
      journey_.intoTunnel = journey_.intoTunnel || goesTo(seen.packet, protocol_, path_.target);
    } else if (journey_.intoTunnel) {
      journey_.answerOutOfTunnel =
          journey_.answerOutOfTunnel || comesFrom(seen.packet, protocol_, path_.target);
    }
  }
  void notePublic(const Wire::Seen& seen) {
    if (!seen.outgoing) {
      begun_ = begun_ || goesTo(seen.packet, protocol_, path_.listen);
    } else if (const Echo echo = question_.echoOf(seen.packet); echo != Echo::Silent) {
      journey_.echo = echo;
    }
  }

  Wire& public_;
  Wire& tunnel_;
  const Question& question_;
  const Path& path_;
  nat::Protocol protocol_;
  bool begun_ = false;
  Journey journey_;
};

}  // namespace

Result<Echo> probe(const std::string& interface, nat::Protocol protocol, const IpAddress& source,
                   const Endpoint& target, std::chrono::milliseconds patience) {
  const auto chosen = choose();
  if (!chosen) {
    return tl::unexpected(chosen.error());
  }
  auto wire = Wire::open(interface);
  if (!wire) {
    return tl::unexpected(wire.error());
  }
  const Question question(protocol, source, chosen->port, target);
  if (auto sent = wire->send(question.packet(kSyn, chosen->sequence)); !sent) {
    return tl::unexpected(sent.error());
  }
  const Deadline end = std::chrono::steady_clock::now() + patience;
  while (waitFor({&*wire}, end)) {
    while (const auto seen = wire->next()) {
      const Echo echo = seen->outgoing ? Echo::Silent : question.echoOf(seen->packet);
      if (echo == Echo::Silent) {
        continue;
      }
      if (wantsReset(question, echo)) {
        (void)wire->send(question.packet(kReset, chosen->sequence + 1));
      }
      return echo;
    }
  }
  return Echo::Silent;
}

Result<Journey> travel(const Path& path, nat::Protocol protocol, const IpAddress& source,
                       std::chrono::milliseconds patience) {
  const auto chosen = choose();
  if (!chosen) {
    return tl::unexpected(chosen.error());
  }
  auto publicSide = Wire::open(path.publicInterface);
  if (!publicSide) {
    return tl::unexpected(publicSide.error());
  }
  auto tunnel = Wire::open(path.tunnel);
  if (!tunnel) {
    return tl::unexpected(tunnel.error());
  }
  const auto gate = Gate::open(path.publicInterface);
  if (!gate) {
    return tl::unexpected(gate.error());
  }
  const Question question(protocol, source, chosen->port, path.listen);
  Watch watch(*publicSide, *tunnel, question, path, protocol);
  const Deadline start = std::chrono::steady_clock::now();
  // Twice: the first one may be what opens the session.
  for (const Deadline end : {start + patience / 2, start + patience}) {
    if (auto sent = gate->send(question.packet(kSyn, chosen->sequence)); !sent) {
      return tl::unexpected(sent.error());
    }
    watch.until(end);
    if (watch.journey().echo != Echo::Silent) {
      break;
    }
  }
  if (!watch.hasBegun()) {
    return fail("packets cannot be made to come in by {}", path.publicInterface);
  }
  if (wantsReset(question, watch.journey().echo)) {
    (void)gate->send(question.packet(kReset, chosen->sequence + 1));
  }
  return watch.journey();
}

}  // namespace adit::cli
