# Manual pages and the shells' completions, which plain `make` writes: the program prints
# them from its own tables, and the page of the out folder is made of docs/. As a script
# (-P), it writes them.
if(CMAKE_SCRIPT_MODE_FILE)
    cmake_minimum_required(VERSION 3.22)
    # tr_write(<file> <command>...): what the command prints
    function(tr_write file)
        get_filename_component(folder ${OUT}/${file} DIRECTORY)
        file(MAKE_DIRECTORY ${folder})
        execute_process(COMMAND ${ARGN} OUTPUT_FILE ${OUT}/${file} RESULT_VARIABLE status)
        if(NOT status EQUAL 0)
            message(FATAL_ERROR "${ARGN}: it ended with ${status}")
        endif()
    endfunction()

    file(REMOVE_RECURSE ${OUT})
    execute_process(COMMAND ${PROGRAM} completion bash -- manual ""
        OUTPUT_VARIABLE pages RESULT_VARIABLE status)
    string(REGEX REPLACE "\t[^\n]*\n" ";" pages "${pages}")
    list(LENGTH pages count)
    if(NOT status EQUAL 0 OR count LESS 2)
        message(FATAL_ERROR "${PROGRAM} names no manual pages")
    endif()
    tr_write(man/man1/tranche.1 ${PROGRAM} manual)
    foreach(page ${pages})
        set(section 1)
        if(page STREQUAL "run-file")
            set(section 5)
        endif()
        tr_write(man/man${section}/tranche-${page}.${section} ${PROGRAM} manual ${page})
    endforeach()
    tr_write(man/man5/tranche-out-folder.5 awk -v title=tranche-out-folder -v section=5
        -v "about=what a run of tranche writes" -v version=${VERSION}
        -f ${SOURCE}/tools/man_page.awk ${SOURCE}/docs/checkpoints.md)
    tr_write(bash-completion/completions/tranche ${PROGRAM} completion bash)
    tr_write(zsh/site-functions/_tranche ${PROGRAM} completion zsh)
    tr_write(fish/vendor_completions.d/tranche.fish ${PROGRAM} completion fish)
    file(TOUCH ${OUT}/written)
    return()
endif()

set(TR_MANUAL ${CMAKE_BINARY_DIR}/share)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(STATUS "no manual pages: the program cannot be run here")
    return()
endif()
add_custom_command(OUTPUT ${TR_MANUAL}/written
    COMMAND ${CMAKE_COMMAND} -DOUT=${TR_MANUAL} -DPROGRAM=$<TARGET_FILE:tranche-program>
        -DSOURCE=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
        -P ${CMAKE_SOURCE_DIR}/cmake/manual.cmake
    DEPENDS tranche-program ${CMAKE_SOURCE_DIR}/cmake/manual.cmake
        ${CMAKE_SOURCE_DIR}/tools/man_page.awk ${CMAKE_SOURCE_DIR}/docs/checkpoints.md
    VERBATIM)
add_custom_target(manual ALL DEPENDS ${TR_MANUAL}/written)
install(DIRECTORY ${TR_MANUAL}/ DESTINATION ${CMAKE_INSTALL_DATADIR}
    PATTERN written EXCLUDE)
