// The packets of a probe: one question to a port, and what answers it. IP packets without a link
// layer's header.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/probe.hpp"

namespace adit::cli {

using Bytes = std::vector<std::uint8_t>;

/// TCP flags.
inline constexpr std::uint8_t kSyn = 0x02;
inline constexpr std::uint8_t kReset = 0x04;

class Question {
 public:
  /// A TCP segment or an empty UDP datagram from `source` and `port` to `target`.
  Question(nat::Protocol protocol, const IpAddress& source, std::uint16_t port,
           const Endpoint& target)
      : tcp_(protocol == nat::Protocol::Tcp), source_(source), port_(port), target_(target) {}

  [[nodiscard]] bool isTcp() const { return tcp_; }
  [[nodiscard]] const Endpoint& target() const { return target_; }
  /// `flags` and `sequence` are TCP's.
  [[nodiscard]] Bytes packet(std::uint8_t flags, std::uint32_t sequence) const;
  /// What a packet says about the question; Silent where it is no answer.
  [[nodiscard]] Echo echoOf(std::span<const std::uint8_t> packet) const;

 private:
  [[nodiscard]] std::uint8_t number() const;
  [[nodiscard]] Bytes header(std::size_t payload) const;
  [[nodiscard]] Echo echoOfError(std::span<const std::uint8_t> message) const;

  bool tcp_;
  IpAddress source_;
  std::uint16_t port_;
  Endpoint target_;
};

/// Whether a packet of that protocol goes to the endpoint, or comes from it, whoever is at the
/// other end. ICMP errors come from the endpoint that the packet they quote went to.
bool goesTo(std::span<const std::uint8_t> packet, nat::Protocol protocol, const Endpoint& endpoint);
bool comesFrom(std::span<const std::uint8_t> packet, nat::Protocol protocol,
               const Endpoint& endpoint);

}  // namespace adit::cli
