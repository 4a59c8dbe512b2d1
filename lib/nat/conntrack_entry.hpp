// An entry of connection tracking, as libnetfilter_conntrack gives it.
#pragma once

#include <libnetfilter_conntrack/libnetfilter_conntrack.h>

#include <memory>
#include <optional>

#include "nat/conntrack.hpp"

namespace adit::nat {

struct CloseHandle {
  void operator()(nfct_handle* handle) const { ::nfct_close(handle); }
};
using ConntrackHandle = std::unique_ptr<nfct_handle, CloseHandle>;

/// The flow of an entry; nothing for what is neither TCP nor UDP.
std::optional<Flow> flowOf(const nf_conntrack* entry);

/// Calls `callback` with `data` for every entry of both families.
Result<void> listEntries(int (*callback)(nf_conntrack_msg_type, nf_conntrack*, void*), void* data);

}  // namespace adit::nat
