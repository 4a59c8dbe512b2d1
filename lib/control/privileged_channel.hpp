// Messages over the socketpair between the two processes of privileged_process.hpp.
//
// SOCK_SEQPACKET keeps packets apart, so that nothing the worker sends can leave the other side
// waiting for the rest. A request is one packet; an answer is as many as it takes, each with one
// byte in front that says whether it is the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "control/privileged_bytes.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

inline constexpr std::size_t kMaxRequest = std::size_t{64} << 10;
/// A configuration of 100 000 peers takes 16 MiB.
inline constexpr std::size_t kMaxAnswer = std::size_t{64} << 20;

struct ChannelPair {
  UniqueFd privileged;
  UniqueFd worker;
};
Result<ChannelPair> makeChannel();
/// What makeChannel() does to the privileged end: a worker that does not listen must not hold it
/// up.
Result<void> boundSending(int socket);

/// What the worker asked: nothing when it closed its end. An empty request stands for a packet
/// that is too long or empty. Descriptors in it are closed.
std::optional<Bytes> receiveRequest(int socket);
/// `descriptor` of -1 is none. Fails when the worker does not take it within ten seconds.
Result<void> sendAnswer(int socket, std::span<const std::uint8_t> answer, int descriptor);

struct Answer {
  Bytes bytes;
  UniqueFd descriptor;
};
Result<void> sendRequest(int socket, std::span<const std::uint8_t> request);
/// Waits as long as it takes, for hooks take long; systemd's watchdog is told so meanwhile.
Result<Answer> receiveAnswer(int socket);

}  // namespace adit::control
