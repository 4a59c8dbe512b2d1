// Attributes of a netlink message, as they are read (netlink(7), "struct nlattr").
#pragma once

#include <linux/netlink.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "util/address.hpp"

namespace adit::netlink {

/// The attributes of a message or of a nest, by type; unknown types are ignored, as is everything
/// from the first attribute on that does not fit into what holds it. Accessors return nothing for
/// an absent attribute and for one of a wrong length. Valid as long as the bytes are.
class Attributes {
 public:
  /// Of a message whose fixed header is `headerSize` bytes long.
  Attributes(const nlmsghdr* message, std::size_t headerSize);
  /// Of a nested attribute.
  explicit Attributes(const nlattr* nest);
  /// Of a message or nest whose attributes are `payload`, which is aligned to 4 bytes.
  explicit Attributes(std::span<const std::uint8_t> payload);

  [[nodiscard]] bool has(std::uint16_t type) const { return find(type) != nullptr; }
  [[nodiscard]] std::optional<std::uint8_t> u8(std::uint16_t type) const;
  [[nodiscard]] std::optional<std::uint16_t> u16(std::uint16_t type) const;
  [[nodiscard]] std::optional<std::uint32_t> u32(std::uint16_t type) const;
  [[nodiscard]] std::optional<std::uint64_t> u64(std::uint16_t type) const;
  [[nodiscard]] std::optional<std::string> string(std::uint16_t type) const;
  [[nodiscard]] std::optional<IpAddress> address(std::uint16_t type) const;
  [[nodiscard]] std::optional<Attributes> nest(std::uint16_t type) const;
  /// Empty for an absent one, too.
  [[nodiscard]] std::span<const std::uint8_t> bytes(std::uint16_t type) const;

 private:
  static constexpr std::size_t kMaximum = 64;
  [[nodiscard]] const nlattr* find(std::uint16_t type) const;
  static int collect(const nlattr* attribute, void* self);
  void add(const nlattr* attribute);
  std::array<const nlattr*, kMaximum> byType_{};
};

/// Calls `each` for every attribute of a nest that is a list, in order, with its payload.
void forEachAttribute(std::span<const std::uint8_t> list,
                      const std::function<void(std::span<const std::uint8_t>)>& each);

/// 4 or 16 bytes as an address; nothing for other lengths.
std::optional<IpAddress> addressFromBytes(std::span<const std::uint8_t> bytes);

}  // namespace adit::netlink
