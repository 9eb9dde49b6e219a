#include "train/watch/monitor.h"

const char *const tr__monitor_tags[TR_MONITOR_TAGS] = {
#define TR_MONITOR_TAG(name, tag) tag,
    TR_MONITOR_LIST(TR_MONITOR_TAG)
#undef TR_MONITOR_TAG
};
