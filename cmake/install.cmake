# Program, library, headers, documents, examples, tranche.pc and the CMake package. The library is static
# unless BUILD_SHARED_LIBS is on; its dependencies are handed on where it is static.
include(CMakePackageConfigHelpers)

install(TARGETS tranche EXPORT tranche-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tranche-program)
    file(RELATIVE_PATH libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(tranche-program PROPERTIES INSTALL_RPATH
        $ORIGIN/${libraries})
    install(TARGETS tranche-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN site EXCLUDE)
# Run files, programs and machine files to begin with.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/tranche
    PATTERN CMakeLists.txt EXCLUDE)

set(TR_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tranche)
install(EXPORT tranche-targets NAMESPACE tranche:: DESTINATION ${TR_PACKAGE_DIR})
configure_package_config_file(cmake/tranche-config.cmake.in tranche-config.cmake
    INSTALL_DESTINATION ${TR_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(tranche-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tranche-config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/tranche-config-version.cmake cmake/find_dnnl.cmake
    DESTINATION ${TR_PACKAGE_DIR})

# tranche.pc finds its prefix from where it lies, so that the installed tree can move.
set(TR_PC_REQUIRES "jansson >= 2.13, libxxhash >= 0.8.0, libpcre2-8 >= 10.32")
if(TR_URING_FOUND)
    string(APPEND TR_PC_REQUIRES ", liburing >= 2.0")
endif()
set(libs "-ldnnl ${OpenMP_C_FLAGS} -pthread -lm")
if(TRANCHE_CUDA)
    string(APPEND libs " -ldl")
endif()
if(TR_MPI_LIBRARY)
    list(JOIN MPI_C_LIBRARIES " " mpi)
    string(PREPEND libs "${mpi} ")
endif()
if(BUILD_SHARED_LIBS)
    set(TR_PC_PRIVATE ".private")
    set(TR_PC_LIBS_PRIVATE "${libs}")
else()
    set(TR_PC_LIBS "${libs}")
endif()
file(RELATIVE_PATH TR_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TR_PC_PREFIX "${TR_PC_PREFIX}")
configure_file(cmake/tranche.pc.in tranche.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tranche.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
