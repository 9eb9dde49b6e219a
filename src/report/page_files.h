// What pages are made of: texts that the build has put into the program
// (cmake/page.cmake).
#ifndef TR_REPORT_PAGE_FILES_H
#define TR_REPORT_PAGE_FILES_H

#include <stddef.h>

typedef struct page_file {
    const char *text; // a zero byte after its end
    size_t bytes;
    const char *hash; // "sha256-...", as a Content-Security-Policy names it
} page_file;

extern const page_file page_script, page_style; // ours: the .js and .css files here
// dygraphs, its style and its licence; of no bytes where the build had none.
extern const page_file page_charts, page_charts_style, page_charts_licence;

#endif
