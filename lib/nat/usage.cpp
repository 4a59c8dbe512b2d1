#include "nat/usage.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <tuple>

#include "nat/conntrack_entry.hpp"

namespace adit::nat {
namespace {

/// Bytes of notices that may wait: some ten thousand connections that end at once.
constexpr int kNoticeBuffer = 4 << 20;

/// Mappings by what they listen on; those of one key do not overlap.
class MappingIndex {
 public:
  explicit MappingIndex(const std::vector<Mapping>& mappings = {}) {
    for (const Mapping& mapping : mappings) {
      byPort_[{mapping.protocol, mapping.listenAddress}].emplace(mapping.firstPort, mapping);
    }
  }

  /// The mapping that has translated a flow.
  [[nodiscard]] const Mapping* find(const Flow& flow) const {
    for (const std::optional<IpAddress>& address :
         {std::optional(flow.originalDestination.address), std::optional<IpAddress>()}) {
      const auto group = byPort_.find({flow.protocol, address});
      if (group == byPort_.end()) {
        continue;
      }
      auto next = group->second.upper_bound(flow.originalDestination.port);
      if (next == group->second.begin()) {
        continue;
      }
      const Mapping& mapping = std::prev(next)->second;
      const auto& target =
          flow.originalDestination.address.isV6() ? mapping.targetV6 : mapping.targetV4;
      if (mapping.lastPort >= flow.originalDestination.port && target == flow.replySource.address) {
        return &mapping;
      }
    }
    return nullptr;
  }

 private:
  std::map<std::pair<Protocol, std::optional<IpAddress>>, std::map<std::uint16_t, Mapping>> byPort_;
};

void add(MapUsage& usage, const nf_conntrack* entry) {
  ++usage.connections;
  usage.packetsIn += ::nfct_get_attr_u64(entry, ATTR_ORIG_COUNTER_PACKETS);
  usage.bytesIn += ::nfct_get_attr_u64(entry, ATTR_ORIG_COUNTER_BYTES);
  usage.packetsOut += ::nfct_get_attr_u64(entry, ATTR_REPL_COUNTER_PACKETS);
  usage.bytesOut += ::nfct_get_attr_u64(entry, ATTR_REPL_COUNTER_BYTES);
}

/// What the callbacks of libnetfilter_conntrack work with.
struct Sum {
  const MappingIndex& index;
  UsageByMapping& usage;
  bool open;
};

int addEntry(nf_conntrack_msg_type, nf_conntrack* entry, void* data) {
  auto& sum = *static_cast<Sum*>(data);
  const auto flow = flowOf(entry);
  const Mapping* mapping = flow ? sum.index.find(*flow) : nullptr;
  if (mapping != nullptr) {
    MapUsage& usage = sum.usage[mapping->listenText()];
    add(usage, entry);
    usage.open += sum.open ? 1 : 0;
  }
  return NFCT_CB_CONTINUE;
}

}  // namespace

class UsageMeter::State {
 public:
  explicit State(ConntrackHandle notices) : notices_(std::move(notices)) {}

  [[nodiscard]] int descriptor() const { return ::nfct_fd(notices_.get()); }

  void collect() {
    Sum sum{index_, ended_, false};
    ::nfct_callback_register(notices_.get(), NFCT_T_DESTROY, addEntry, &sum);
    // Ends with EAGAIN; ENOBUFS says that notices were dropped, and more may wait.
    while (::nfct_catch(notices_.get()) >= 0 || errno == ENOBUFS || errno == EINTR) {
    }
    ::nfct_callback_unregister(notices_.get());
  }

  void setMappings(const std::vector<Mapping>& mappings) {
    collect();
    index_ = MappingIndex(mappings);
    UsageByMapping kept;
    for (const Mapping& mapping : mappings) {
      const std::string name = mapping.listenText();
      const auto before = ended_.find(name);
      kept[name] = before == ended_.end() ? MapUsage{} : before->second;
    }
    ended_ = std::move(kept);
  }

  Result<UsageByMapping> usage() {
    // Before the list: what ends in between is in neither for now, rather than in both.
    collect();
    UsageByMapping all;
    Sum sum{index_, all, true};
    if (auto listed = listEntries(addEntry, &sum); !listed) {
      return tl::unexpected(listed.error());
    }
    for (const auto& [name, ended] : ended_) {
      MapUsage& usage = all[name];
      usage.connections += ended.connections;
      usage.packetsIn += ended.packetsIn;
      usage.bytesIn += ended.bytesIn;
      usage.packetsOut += ended.packetsOut;
      usage.bytesOut += ended.bytesOut;
    }
    return all;
  }

 private:
  ConntrackHandle notices_;
  MappingIndex index_;
  UsageByMapping ended_;
};

UsageMeter::UsageMeter(std::unique_ptr<State> state) : state_(std::move(state)) {}

UsageMeter::~UsageMeter() = default;

Result<std::unique_ptr<UsageMeter>> UsageMeter::open() {
  ConntrackHandle notices(::nfct_open(CONNTRACK, NF_NETLINK_CONNTRACK_DESTROY));
  if (!notices) {
    return failErrno(errno, "listen to connection tracking");
  }
  const int descriptor = ::nfct_fd(notices.get());
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0 ||
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0) {
    return failErrno(errno, "listen to connection tracking");
  }
  // A smaller buffer is no failure.
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &kNoticeBuffer, sizeof(kNoticeBuffer));
  return std::unique_ptr<UsageMeter>(new UsageMeter(std::make_unique<State>(std::move(notices))));
}

int UsageMeter::descriptor() const {
  return state_->descriptor();
}

void UsageMeter::collect() {
  state_->collect();
}

void UsageMeter::setMappings(const std::vector<Mapping>& mappings) {
  state_->setMappings(mappings);
}

Result<UsageByMapping> UsageMeter::usage() {
  return state_->usage();
}

}  // namespace adit::nat
