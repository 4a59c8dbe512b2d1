#include "control/privileged_codec.hpp"

namespace adit::control {

std::span<const std::uint8_t> Decoder::raw(std::size_t size) {
  if (failed_ || size > rest_.size()) {
    failed_ = true;
    return {};
  }
  const auto bytes = rest_.first(size);
  rest_ = rest_.subspan(size);
  return bytes;
}

std::string Decoder::text() {
  const auto bytes = raw(scalar<std::uint32_t>());
  return {bytes.begin(), bytes.end()};
}

IpAddress Decoder::address() {
  if (scalar<bool>()) {
    const auto bytes = raw(16);
    return failed_ ? IpAddress() : IpAddress::fromV6(bytes.first<16>());
  }
  const auto bytes = raw(4);
  return failed_ ? IpAddress() : IpAddress::fromV4(bytes.first<4>());
}

}  // namespace adit::control
