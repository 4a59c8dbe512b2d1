// The words of libnftables-json(5) that our rules are made of. Internal to lib/nat.
#pragma once

#include <netinet/in.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace adit::nat::expression {

using nlohmann::json;

inline json meta(std::string_view key) {
  return {{"meta", {{"key", key}}}};
}

inline json payload(std::string_view protocol, std::string_view field) {
  return {{"payload", {{"protocol", protocol}, {"field", field}}}};
}

inline json ct(std::string_view key) {
  return {{"ct", {{"key", key}}}};
}

/// Of the direction in which the connection was opened.
inline json ctOriginal(std::string_view key) {
  return {{"ct", {{"key", key}, {"dir", "original"}}}};
}

inline json concat(std::vector<json> parts) {
  return {{"concat", std::move(parts)}};
}

inline json anyOf(std::vector<json> values) {
  return values.size() == 1 ? values.front() : json{{"set", std::move(values)}};
}

inline json setName(const std::string& name) {
  return "@" + name;
}

inline json mapLookup(json key, const std::string& map) {
  return {{"map", {{"key", std::move(key)}, {"data", setName(map)}}}};
}

/// Matches what exceeds the limit that a map has for the key; not at all where it has none.
inline json exceeds(json key, const std::string& map) {
  return {{"limit", mapLookup(std::move(key), map)}};
}

inline json match(std::string_view operation, json left, json right) {
  return {{"match", {{"op", operation}, {"left", std::move(left)}, {"right", std::move(right)}}}};
}

inline json equal(json left, json right) {
  return match("==", std::move(left), std::move(right));
}

inline json differs(json left, json right) {
  return match("!=", std::move(left), std::move(right));
}

/// `key & mask`
inline json masked(json key, std::uint32_t mask) {
  return {{"&", {std::move(key), mask}}};
}

/// Sets the bits of `mask` in a mark to `value` and leaves the others.
inline json setMaskedMark(json key, std::uint32_t value, std::uint32_t mask) {
  json kept = masked(key, ~mask);
  return {{"mangle", {{"key", std::move(key)}, {"value", {{"|", {std::move(kept), value}}}}}}};
}

inline json set(json key, json value) {
  return {{"mangle", {{"key", std::move(key)}, {"value", std::move(value)}}}};
}

/// Needed in front of any use of ports whose protocol is not otherwise known to nft.
inline json tcpOrUdp() {
  return equal(meta("l4proto"), {{"set", {int{IPPROTO_TCP}, int{IPPROTO_UDP}}}});
}

inline json connectionIs(std::string_view status) {
  return match("in", ct("status"), status);
}

/// 1 for a packet to a local socket that is bound to no address (Linux 5.11).
inline json socketIsUnbound() {
  return {{"socket", {{"key", "wildcard"}}}};
}

/// The destination is an address of this host.
inline json toThisHost() {
  return equal({{"fib", {{"result", "type"}, {"flags", {"daddr"}}}}}, "local");
}

/// The interface that this host would answer the packet's source by.
inline json wayBack() {
  return {{"fib", {{"result", "oifname"}, {"flags", {"saddr"}}}}};
}

inline json jump(std::string_view verdict, std::string_view chain) {
  return {{verdict, {{"target", chain}}}};
}

inline json verdict(std::string_view word) {
  return {{word, nullptr}};
}

}  // namespace adit::nat::expression
