#include "netlink/attributes.hpp"

#include <libmnl/libmnl.h>

#include <algorithm>
#include <cstring>

namespace adit::netlink {
namespace {

template <typename T>
std::optional<T> scalar(std::span<const std::uint8_t> payload) {
  if (payload.size() != sizeof(T)) {
    return std::nullopt;
  }
  T value{};
  std::memcpy(&value, payload.data(), sizeof(value));
  return value;
}

std::span<const std::uint8_t> payloadOf(const nlattr* attribute) {
  return {static_cast<const std::uint8_t*>(mnl_attr_get_payload(attribute)),
          mnl_attr_get_payload_len(attribute)};
}

}  // namespace

Attributes::Attributes(const nlmsghdr* message, std::size_t headerSize) {
  mnl_attr_parse(message, static_cast<unsigned>(headerSize), collect, this);
}

Attributes::Attributes(const nlattr* nest) {
  mnl_attr_parse_nested(nest, collect, this);
}

Attributes::Attributes(std::span<const std::uint8_t> payload) {
  mnl_attr_parse_payload(payload.data(), payload.size(), collect, this);
}

int Attributes::collect(const nlattr* attribute, void* self) {
  static_cast<Attributes*>(self)->add(attribute);
  return MNL_CB_OK;
}

void Attributes::add(const nlattr* attribute) {
  const std::uint16_t type = mnl_attr_get_type(attribute);
  if (type < byType_.size()) {
    byType_[type] = attribute;
  }
}

const nlattr* Attributes::find(std::uint16_t type) const {
  return type < byType_.size() ? byType_[type] : nullptr;
}

std::span<const std::uint8_t> Attributes::bytes(std::uint16_t type) const {
  const nlattr* attribute = find(type);
  if (attribute == nullptr) {
    return {};
  }
  return payloadOf(attribute);
}

std::optional<std::uint8_t> Attributes::u8(std::uint16_t type) const {
  return scalar<std::uint8_t>(bytes(type));
}

std::optional<std::uint16_t> Attributes::u16(std::uint16_t type) const {
  return scalar<std::uint16_t>(bytes(type));
}

std::optional<std::uint32_t> Attributes::u32(std::uint16_t type) const {
  return scalar<std::uint32_t>(bytes(type));
}

std::optional<std::uint64_t> Attributes::u64(std::uint16_t type) const {
  return scalar<std::uint64_t>(bytes(type));
}

std::optional<std::string> Attributes::string(std::uint16_t type) const {
  const auto payload = bytes(type);
  if (payload.empty()) {
    return std::nullopt;
  }
  return std::string(payload.begin(), std::ranges::find(payload, std::uint8_t{0}));
}

std::optional<IpAddress> Attributes::address(std::uint16_t type) const {
  return addressFromBytes(bytes(type));
}

std::optional<Attributes> Attributes::nest(std::uint16_t type) const {
  const nlattr* attribute = find(type);
  return attribute != nullptr ? std::optional(Attributes(attribute)) : std::nullopt;
}

void forEachAttribute(std::span<const std::uint8_t> list,
                      const std::function<void(std::span<const std::uint8_t>)>& each) {
  using Each = std::function<void(std::span<const std::uint8_t>)>;
  mnl_attr_parse_payload(
      list.data(), list.size(),
      [](const nlattr* attribute, void* data) {
        (*static_cast<const Each*>(data))(payloadOf(attribute));
        return MNL_CB_OK;
      },
      const_cast<void*>(static_cast<const void*>(&each)));
}

std::optional<IpAddress> addressFromBytes(std::span<const std::uint8_t> bytes) {
  if (bytes.size() == 4) {
    return IpAddress::fromV4(bytes.first<4>());
  }
  if (bytes.size() == 16) {
    return IpAddress::fromV6(bytes.first<16>());
  }
  return std::nullopt;
}

}  // namespace adit::netlink
