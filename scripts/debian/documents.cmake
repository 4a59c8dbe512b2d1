# Run by cpack between installation and packing: what Debian's policy wants of a package's
# documentation. CPACK_TEMPORARY_INSTALL_DIRECTORY/COMPONENT is a package's tree.
foreach(component adit dkms)
  set(package adit)
  if(component STREQUAL dkms)
    set(package adit-dkms)
  endif()
  set(share "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share")
  file(COPY "${CMAKE_CURRENT_LIST_DIR}/copyright" DESTINATION "${share}/doc/${package}")
  file(COPY "${CMAKE_CURRENT_LIST_DIR}/overrides/${package}" DESTINATION "${share}/lintian/overrides")
  execute_process(COMMAND "${CMAKE_CURRENT_LIST_DIR}/changelog" ${package}
    "${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}" "${share}/doc/${package}/changelog.Debian.gz"
    COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE pages "${share}/man/*.[1-9]")
  if(pages)
    execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
