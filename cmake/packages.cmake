# Debian packages of the components `adit` and `dkms`, and the tarball; scripts/package makes them.
set(CPACK_PACKAGE_NAME adit)
set(CPACK_PACKAGE_CONTACT "adit maintainers <adit@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL adit dkms)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# A later package of the same tree is an upgrade: scripts/package counts commits.
set(CPACK_DEBIAN_PACKAGE_RELEASE "$ENV{ADIT_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# What dpkg runs, and what policy wants of a package's documentation.
set(scripts ${CMAKE_CURRENT_BINARY_DIR}/debian)
foreach(script adit/postinst adit/prerm adit/postrm dkms/postinst dkms/prerm)
  configure_file(scripts/debian/${script} ${scripts}/${script} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
endforeach()

set(CPACK_DEBIAN_ADIT_PACKAGE_NAME adit)
set(CPACK_COMPONENT_ADIT_DESCRIPTION
  "encrypted tunnel from a NAS to a public server, and its ports
A machine without a public address is joined to a server that has one, and
the machine's services appear on the server's ports. adit speaks WireGuard's
protocol, so that any WireGuard peer can join, and moves packets in the kernel
(with adit-dkms) or in user space.

This package has the command adit, the daemon aditd and the unit adit@.service.")
set(CPACK_DEBIAN_ADIT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ADIT_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers | opensysusers")
set(CPACK_DEBIAN_ADIT_PACKAGE_RECOMMENDS "adit-dkms (= ${PROJECT_VERSION}-$ENV{ADIT_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_ADIT_PACKAGE_SUGGESTS "iperf3, wireguard-tools")
set(CPACK_DEBIAN_ADIT_PACKAGE_CONTROL_EXTRA
  "${scripts}/adit/postinst;${scripts}/adit/prerm;${scripts}/adit/postrm")

set(CPACK_DEBIAN_DKMS_PACKAGE_NAME adit-dkms)
set(CPACK_COMPONENT_DKMS_DESCRIPTION
  "kernel module of adit, built by DKMS for each kernel
adit.ko encrypts and forwards in kernel space. Where it cannot be built or
loaded, adit goes on in user space and says why.")
set(CPACK_DEBIAN_DKMS_PACKAGE_SECTION kernel)
set(CPACK_DEBIAN_DKMS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DKMS_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DKMS_PACKAGE_DEPENDS "dkms (>= 3)")
set(CPACK_DEBIAN_DKMS_PACKAGE_RECOMMENDS "linux-headers-generic | linux-headers")
set(CPACK_DEBIAN_DKMS_PACKAGE_CONTROL_EXTRA
  "${scripts}/dkms/postinst;${scripts}/dkms/prerm")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/debian/documents.cmake)
include(CPack)
