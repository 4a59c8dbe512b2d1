// As much of HTTP/1.1 (RFC 9112) as a scrape needs: one request, one answer, the end. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace adit::metrics {

/// Bytes of a request's head; a longer one is refused.
inline constexpr std::size_t kMaxHead = 4096;

/// Who may ask. A page in a browser may be made to name us by a host of its own (DNS rebinding);
/// over a unix socket it cannot.
enum class Hosts : std::uint8_t { Any, Loopback };

/// The whole answer to the bytes that have come so far; nothing while the head is not complete.
/// `page` is called for GET /metrics alone. Never throws; what is malformed gets a 400.
std::optional<std::string> answerTo(std::string_view received, Hosts hosts,
                                    const std::function<std::string()>& page);

}  // namespace adit::metrics
