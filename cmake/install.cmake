# What belongs to an installation beside the programs: the units, the system user, completions, manual
# pages, documentation, examples; and, as the component `dkms`, the module's source for DKMS. Every
# path below CMAKE_INSTALL_PREFIX, as DKMS and systemd look for it when that is /usr or /usr/local.

set(BINDIR ${CMAKE_INSTALL_FULL_BINDIR})
set(SBINDIR ${CMAKE_INSTALL_FULL_SBINDIR})
set(units ${CMAKE_CURRENT_BINARY_DIR}/systemd)
foreach(unit adit@.service adit-helper@.service)
  configure_file(scripts/systemd/${unit}.in ${units}/${unit} @ONLY)
  install(FILES ${units}/${unit} DESTINATION lib/systemd/system)
endforeach()
install(FILES scripts/systemd/adit.sysusers DESTINATION lib/sysusers.d RENAME adit.conf)
install(FILES scripts/systemd/adit.tmpfiles DESTINATION lib/tmpfiles.d RENAME adit.conf)

install(FILES docs/man/adit.8 docs/man/aditd.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES docs/man/adit.conf.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES scripts/completion/adit.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME adit)
install(FILES scripts/completion/_adit DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES scripts/completion/adit.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

file(GLOB documents CONFIGURE_DEPENDS docs/*.md)
install(FILES README.md ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# `cmake --install BUILD --component dkms` puts it where `dkms add adit/VERSION` finds it.
install(CODE "
  set(tree \"\$ENV{DESTDIR}/usr/src/adit-${PROJECT_VERSION}\")
  execute_process(COMMAND make --no-print-directory -C \"${PROJECT_SOURCE_DIR}/kmod\"
    dkms-tree \"DESTDIR=\${tree}\" COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS \"Installed: \${tree}\")"
  COMPONENT dkms EXCLUDE_FROM_ALL)
