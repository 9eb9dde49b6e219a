#include "data/sources/tell.h"

#include "data/sources/formats.h"

#include "base/clock.h"
#include "base/text.h"

static const double told_every = 2; // seconds

tr_tell tr__tell_begin(const tr_data_options *options) {
    return (tr_tell){options, tr__seconds() + 1};
}

void tr__tell(tr_tell *tell, const char *what, int64_t bytes, int64_t total) {
    double now = tr__seconds();
    char size[32];
    if (now < tell->next || bytes >= total) {
        return;
    }
    tell->next = now + told_every;
    tr__print_size(size, sizeof size, total);
    tr__data_say(tell->options, "%s: %.0f%% of %s", what,
                 100 * (double)bytes / (double)total, size);
}
