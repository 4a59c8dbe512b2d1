# Shared by the scripts beside it; sourced, not run. Everything it prints goes to standard error.
# shellcheck shell=bash

ADIT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ADIT_BUILD_DIR=$(realpath -m "${ADIT_BUILD_DIR:-$ADIT_ROOT/build}")
export ADIT_ROOT ADIT_BUILD_DIR

# Debian 12. cmake/dependencies.cmake looks for what these bring.
ADIT_BUILD_PACKAGES=(
  g++ cmake ninja-build ccache pkg-config
  libmnl-dev libsodium-dev libssl-dev libcli11-dev nlohmann-json3-dev libfmt-dev libspdlog-dev
  libexpected-dev libnftables-dev libnetfilter-conntrack-dev libsystemd-dev libcap-dev libqrencode-dev
  catch2
)
# intel-ipsec-mb is for x86-64 alone.
if [[ $(dpkg --print-architecture 2>/dev/null) == amd64 ]]; then
  ADIT_BUILD_PACKAGES+=(libipsec-mb-dev)
fi
# What the namespaces need: scripts/demo, tools/bench-user and the tests.
ADIT_LAB_PACKAGES=(
  python3 iproute2 nftables iputils-ping procps curl wireguard-tools iperf3 nginx-light
)
# What tools/vm and the module's build need beside them.
ADIT_VM_PACKAGES=(
  qemu-system-x86 busybox-static kmod cpio zstd make gcc-12 libelf1 ethtool conntrack findutils
)
ADIT_TEST_PACKAGES=(
  "${ADIT_LAB_PACKAGES[@]}" "${ADIT_VM_PACKAGES[@]}" wireguard-go clang-format shellcheck natpmpc
  python3-libtorrent ufw firewalld dbus-daemon lintian debootstrap fakeroot dpkg-dev
)
# What scripts/test --full needs beside them: to build the kernels of tools/debug-kernel, and to read
# the module's source.
ADIT_FULL_PACKAGES=(flex bison bc perl libelf-dev sparse clang lld llvm)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  say "$*"
  exit 1
}

need_root() {
  ((EUID == 0)) || die "needs root for $1; run: sudo $0"
}

# Package installation must not start services on this machine (nginx would take port 80).
# invoke-rc.d and deb-systemd-invoke ask this file; 101 means "do not".
forbid_services() {
  [[ -e /usr/sbin/policy-rc.d ]] && return
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
}

allow_services() {
  if [[ -n $(trap -p EXIT) ]]; then
    rm -f /usr/sbin/policy-rc.d
    trap - EXIT
  fi
}

# Nor at the next boot: only for what was not here before. By package, the service.
declare -A ADIT_SERVICES=([nginx-light]=nginx [firewalld]=firewalld [ufw]=ufw)

disable_new_services() {
  local package service
  for package in "$@"; do
    service=${ADIT_SERVICES[$package]-}
    [[ -n $service ]] || continue
    if command -v systemctl >/dev/null; then
      systemctl --quiet disable "$service.service" >&2 || true
    fi
    if command -v update-rc.d >/dev/null && [[ -e /etc/init.d/$service ]]; then
      update-rc.d "$service" disable >&2 || true
    fi
  done
}

# install_packages NAME...: installs what is missing with apt.
install_packages() {
  local missing=() package status
  for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [[ $status == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null ||
    die "needs these Debian 12 packages, and there is no apt-get to install them: ${missing[*]}"
  ((EUID == 0)) || die "needs packages; run as root: apt-get install ${missing[*]}"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local apt=(apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120)
  export DEBIAN_FRONTEND=noninteractive
  "${apt[@]}" update >&2 || say "apt-get update failed; trying with the lists that are here"
  forbid_services
  "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null >&2 ||
    die "apt-get could not install: ${missing[*]}"
  allow_services
  disable_new_services "${missing[@]}"
}

# build_tree DIR CMAKE_OPTION... -- TARGET...: configures and builds, at most two lines on success.
build_tree() {
  local dir=$1 options=() launcher=()
  shift
  while (($#)) && [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  if command -v ccache >/dev/null; then
    export CCACHE_NOHASHDIR=1  # the release tree and the packages' have the same objects
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  fi
  say "building in $dir"
  cmake -S "$ADIT_ROOT" -B "$dir" -G Ninja "${launcher[@]}" "${options[@]}" >"$dir.log" 2>&1 || {
    cat "$dir.log" >&2
    die "cmake failed"
  }
  rm -f "$dir.log"
  cmake --build "$dir" --target "$@" >&2 || die "the build failed"
}
