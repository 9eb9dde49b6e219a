// Long work on data, told to people: a line every two seconds, from its first second
// on.
#ifndef TR_DATA_SOURCES_TELL_H
#define TR_DATA_SOURCES_TELL_H

#include <tranche/data.h>

typedef struct tr_tell {
    const tr_data_options *options; // whom to tell
    double next;                    // tr__seconds() of the next line
} tr_tell;

tr_tell tr__tell_begin(const tr_data_options *options);
// "WHAT: 40% of 1.20 GiB", where it is time for a line and there is more to do. bytes
// of `total` are done.
void tr__tell(tr_tell *tell, const char *what, int64_t bytes, int64_t total);

#endif
