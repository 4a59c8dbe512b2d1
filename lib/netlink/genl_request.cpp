#include <linux/genetlink.h>

#include <cstdlib>
#include <cstring>

#include "netlink/genl.hpp"

namespace adit::netlink {
namespace {

constexpr std::size_t kHeaders = NLMSG_HDRLEN + GENL_HDRLEN;
/// Most requests fit, so that the buffer need not grow.
constexpr std::size_t kUsualSize = 512;

std::span<const std::uint8_t> bytesOf(const auto& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)};
}

/// A length that fits into an attribute's header.
std::uint16_t attributeLength(std::size_t payload) {
  if (payload > 0xffff - NLA_HDRLEN) {
    std::abort();
  }
  return static_cast<std::uint16_t>(NLA_HDRLEN + payload);
}

}  // namespace

GenlRequest::GenlRequest(std::uint8_t command) : command_(command) {
  bytes_.reserve(kUsualSize);
  bytes_.resize(kHeaders);
}

void GenlRequest::put(std::uint16_t type, std::span<const std::uint8_t> bytes) {
  const nlattr header{attributeLength(bytes.size()), type};
  const auto encoded = bytesOf(header);
  bytes_.insert(bytes_.end(), encoded.begin(), encoded.end());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

void GenlRequest::putString(std::uint16_t type, std::string_view text) {
  const std::string terminated(text);
  put(type, {reinterpret_cast<const std::uint8_t*>(terminated.c_str()), terminated.size() + 1});
}

void GenlRequest::putU8(std::uint16_t type, std::uint8_t value) {
  put(type, bytesOf(value));
}

void GenlRequest::putU16(std::uint16_t type, std::uint16_t value) {
  put(type, bytesOf(value));
}

void GenlRequest::putU32(std::uint16_t type, std::uint32_t value) {
  put(type, bytesOf(value));
}

void GenlRequest::putU64(std::uint16_t type, std::uint64_t value) {
  put(type, bytesOf(value));
}

std::size_t GenlRequest::beginNest(std::uint16_t type) {
  const std::size_t start = bytes_.size();
  put(static_cast<std::uint16_t>(type | NLA_F_NESTED), {});
  return start;
}

void GenlRequest::endNest(std::size_t nest) {
  const std::uint16_t length = attributeLength(bytes_.size() - nest - NLA_HDRLEN);
  std::memcpy(bytes_.data() + nest + offsetof(nlattr, nla_len), &length, sizeof(length));
}

std::span<const std::uint8_t> GenlRequest::attributes() const {
  return std::span(bytes_).subspan(kHeaders);
}

std::span<const std::uint8_t> GenlRequest::encode(std::uint16_t family, std::uint8_t version,
                                                  std::uint16_t flags, std::uint32_t sequence) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
  header.nlmsg_type = family;
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  header.nlmsg_seq = sequence;
  genlmsghdr generic{};
  generic.cmd = command_;
  generic.version = version;
  std::memcpy(bytes_.data(), &header, sizeof(header));
  std::memcpy(bytes_.data() + NLMSG_HDRLEN, &generic, sizeof(generic));
  return bytes_;
}

}  // namespace adit::netlink
