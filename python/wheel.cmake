# What a wheel has beside the modules: library, program and declarations, and GCC's OpenMP
# under its own name, so that a process that has one already takes no second one.
install(FILES ${package}/_declarations.py DESTINATION tranche COMPONENT python)
install(TARGETS tranche LIBRARY DESTINATION tranche/lib COMPONENT python
    NAMELINK_SKIP)
install(TARGETS tranche-program RUNTIME DESTINATION tranche/bin COMPONENT python)
get_target_property(soversion tranche SOVERSION)
set_target_properties(tranche PROPERTIES INSTALL_RPATH $ORIGIN
    INSTALL_RPATH_USE_LINK_PATH ON # an MPI that lies elsewhere
    VERSION ${soversion}) # one file: a wheel has no links
set_target_properties(tranche-program PROPERTIES INSTALL_RPATH $ORIGIN/../lib)

execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libgomp.so.1
    OUTPUT_VARIABLE openmp OUTPUT_STRIP_TRAILING_WHITESPACE)
file(REAL_PATH ${openmp} openmp)
if(EXISTS ${openmp})
    install(FILES ${openmp} DESTINATION tranche/lib RENAME libgomp.so.1 COMPONENT python)
else()
    message(FATAL_ERROR "the compiler names no libgomp.so.1")
endif()
