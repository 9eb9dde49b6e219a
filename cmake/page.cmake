# What the pages of `tranche report` are made of: our script and style, and the charts of
# dygraphs (Debian: libjs-dygraphs), which the system has and the repository has not.
# The objects of page-files hold them.
find_path(TR_DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs
    DOC "folder of dygraphs' dygraph.min.js and dygraph.min.css" NO_DEFAULT_PATH)
find_file(TR_DYGRAPHS_LICENCE copyright PATHS /usr/share/doc/libjs-dygraphs
    DOC "dygraphs' licence" NO_DEFAULT_PATH)
mark_as_advanced(TR_DYGRAPHS TR_DYGRAPHS_LICENCE)
set(dygraphs "")
set(libraries "")
if(TR_DYGRAPHS AND TR_DYGRAPHS_LICENCE)
    set(dygraphs ${TR_DYGRAPHS})
    set(libraries ${TR_DYGRAPHS}/dygraph.min.js ${TR_DYGRAPHS}/dygraph.min.css
        ${TR_DYGRAPHS_LICENCE})
else()
    message(STATUS "dygraphs is not here: reports have pictures in place of charts "
        "(Debian: libjs-dygraphs)")
endif()

file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/report/*.js)
file(GLOB styles CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/report/*.css)
list(JOIN scripts "," scripts_list)
list(JOIN styles "," styles_list)
set(TR_PAGE_FILES ${CMAKE_BINARY_DIR}/page_files.c)
add_custom_command(OUTPUT ${TR_PAGE_FILES}
    COMMAND ${CMAKE_COMMAND} -DOUT=${TR_PAGE_FILES} -DSCRIPTS=${scripts_list}
        -DSTYLES=${styles_list} -DDYGRAPHS=${dygraphs} -DLICENCE=${TR_DYGRAPHS_LICENCE}
        -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${scripts} ${styles} ${libraries} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
add_library(page-files OBJECT ${TR_PAGE_FILES})
tr_target_options(page-files)
target_include_directories(page-files PRIVATE src)
