# Every library that adit links, found once. All of them are Debian 12 packages;
# scripts/lib.sh holds the package names.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(CLI11 2.1 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(tl-expected REQUIRED)

pkg_check_modules(MNL REQUIRED IMPORTED_TARGET libmnl)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(NFTABLES REQUIRED IMPORTED_TARGET libnftables)
pkg_check_modules(CONNTRACK REQUIRED IMPORTED_TARGET libnetfilter_conntrack)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(CAP REQUIRED IMPORTED_TARGET libcap)
pkg_check_modules(QRENCODE REQUIRED IMPORTED_TARGET libqrencode)

# intel-ipsec-mb exists for x86-64 only; elsewhere OpenSSL and libsodium do the work.
find_path(IPSEC_MB_INCLUDE_DIR intel-ipsec-mb.h)
find_library(IPSEC_MB_LIBRARY IPSec_MB)
if(IPSEC_MB_INCLUDE_DIR AND IPSEC_MB_LIBRARY)
  add_library(ipsec_mb INTERFACE)
  target_include_directories(ipsec_mb INTERFACE ${IPSEC_MB_INCLUDE_DIR})
  target_link_libraries(ipsec_mb INTERFACE ${IPSEC_MB_LIBRARY})
endif()

if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  find_package(Catch2 2.13 REQUIRED)
endif()
