# Takes the steps of the port in PORT_FOLDER where there is no vcpkg: its functions, as far as the port calls them, and then the port.
set(PORT strata)
set(CURRENT_PACKAGES_DIR "${WORK}/installed")

function(vcpkg_download_distfile out)
  cmake_parse_arguments(arg "" "FILENAME;SHA512" URLS ${ARGN})
  file(DOWNLOAD "${arg_URLS}" "${WORK}/${arg_FILENAME}" EXPECTED_HASH SHA512=${arg_SHA512})
  set(${out} "${WORK}/${arg_FILENAME}" PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive out)
  cmake_parse_arguments(arg "" ARCHIVE "" ${ARGN})
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${WORK}/source")
  file(GLOB source "${WORK}/source/*")
  set(${out} "${source}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" SOURCE_PATH "" ${ARGN})
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${WORK}/build" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Moves what find_package reads to share/strata, which lies less deep below the prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(arg "" CONFIG_PATH "" ${ARGN})
  file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  set(config "${CURRENT_PACKAGES_DIR}/share/${PORT}/strataConfig.cmake")
  file(READ "${config}" text)
  string(REGEX REPLACE "PACKAGE_PREFIX_DIR \"[^\"]*\"" "PACKAGE_PREFIX_DIR \"\${CMAKE_CURRENT_LIST_DIR}/../../\"" text "${text}")
  file(WRITE "${config}" "${text}")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "" FILE_LIST ${ARGN})
  file(INSTALL "${arg_FILE_LIST}" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

include("${PORT_FOLDER}/portfile.cmake")
