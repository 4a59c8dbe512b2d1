#include "nat/conntrack_entry.hpp"

#include <cerrno>
#include <span>

namespace adit::nat {
namespace {

/// An address and a port of an entry.
Endpoint endpointOf(const nf_conntrack* entry, bool v6, nf_conntrack_attr address4,
                    nf_conntrack_attr address6, nf_conntrack_attr port) {
  Endpoint endpoint;
  const void* bytes = ::nfct_get_attr(entry, v6 ? address6 : address4);
  if (bytes != nullptr) {
    const auto* octets = static_cast<const std::uint8_t*>(bytes);
    endpoint.address = v6 ? IpAddress::fromV6(std::span<const std::uint8_t, 16>(octets, 16))
                          : IpAddress::fromV4(std::span<const std::uint8_t, 4>(octets, 4));
  }
  endpoint.port = ntohs(::nfct_get_attr_u16(entry, port));
  return endpoint;
}

}  // namespace

std::optional<Flow> flowOf(const nf_conntrack* entry) {
  const std::uint8_t protocol = ::nfct_get_attr_u8(entry, ATTR_ORIG_L4PROTO);
  if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) {
    return std::nullopt;
  }
  const bool v6 = ::nfct_get_attr_u8(entry, ATTR_ORIG_L3PROTO) == AF_INET6;
  Flow flow;
  flow.protocol = static_cast<Protocol>(protocol);
  flow.originalSource =
      endpointOf(entry, v6, ATTR_ORIG_IPV4_SRC, ATTR_ORIG_IPV6_SRC, ATTR_ORIG_PORT_SRC);
  flow.originalDestination =
      endpointOf(entry, v6, ATTR_ORIG_IPV4_DST, ATTR_ORIG_IPV6_DST, ATTR_ORIG_PORT_DST);
  flow.replySource =
      endpointOf(entry, v6, ATTR_REPL_IPV4_SRC, ATTR_REPL_IPV6_SRC, ATTR_REPL_PORT_SRC);
  flow.replyDestination =
      endpointOf(entry, v6, ATTR_REPL_IPV4_DST, ATTR_REPL_IPV6_DST, ATTR_REPL_PORT_DST);
  return flow;
}

Result<void> listEntries(int (*callback)(nf_conntrack_msg_type, nf_conntrack*, void*), void* data) {
  const ConntrackHandle reader(::nfct_open(CONNTRACK, 0));
  if (!reader) {
    return failErrno(errno, "open connection tracking");
  }
  ::nfct_callback_register(reader.get(), NFCT_T_ALL, callback, data);
  for (const std::uint32_t family : {std::uint32_t{AF_INET}, std::uint32_t{AF_INET6}}) {
    if (::nfct_query(reader.get(), NFCT_Q_DUMP, &family) < 0) {
      return failErrno(errno, "list tracked connections");
    }
  }
  return {};
}

}  // namespace adit::nat
