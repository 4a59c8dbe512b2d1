// The Internet checksum (RFC 1071) of IP, TCP and UDP headers.
//
// Sums are kept unfolded in 64 bits and in the byte order of memory, so that a folded result is
// stored and compared as it is. A sum over pieces is right when every piece but the last has an
// even length.
#pragma once

#include <cstdint>
#include <span>

namespace adit::dataplane::user {

/// `initial` plus the 16-bit words of `bytes`, an odd last byte padded with zero.
std::uint64_t sumBytes(std::span<const std::uint8_t> bytes, std::uint64_t initial = 0);

/// Folds a sum to 16 bits. 0xffff for data that includes its own right checksum.
std::uint16_t foldSum(std::uint64_t sum);

/// What goes into a checksum field: the complement of the folded sum.
inline std::uint16_t finishChecksum(std::uint64_t sum) {
  return static_cast<std::uint16_t>(~foldSum(sum));
}

/// The pseudo-header of TCP and UDP (RFC 9293 section 3.1, RFC 8200 section 8.1): `ip` is the IP
/// header, of either version, `length` the bytes of transport header and payload.
std::uint64_t pseudoHeaderSum(const std::uint8_t* ip, std::uint8_t protocol, std::uint32_t length);

/// Recomputes the checksum of an IPv4 header of `length` bytes in place.
void writeIpv4Checksum(std::uint8_t* header, std::size_t length);

/// Adapts a checksum field to a changed 16-bit word (RFC 1624, equation 3).
void adjustChecksum(std::uint8_t* field, std::uint16_t before, std::uint16_t after);

}  // namespace adit::dataplane::user
