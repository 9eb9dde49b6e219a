// One step in time, as a trace of `tranche train --trace` or `tranche simulate --trace`
// has it: what each stream of each rank does when.
#ifndef TR_REPORT_TIMELINE_H
#define TR_REPORT_TIMELINE_H

#include <tranche/status.h>

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct timeline_lane {
    int64_t rank, number; // of its rank's streams
    const char *stream;   // "compute"
    double busy;          // microseconds
    int64_t spans;
} timeline_lane;

typedef struct timeline_span {
    int lane, name, kind; // numbers of a lane and of names
    double begin, length; // microseconds
    int64_t step;         // of the plan
    int64_t micro_batch;  // -1: none
    bool critical;        // it is on the critical path
} timeline_span;

typedef struct timeline {
    json_t *trace; // whose texts the others are
    timeline_lane *lanes;
    timeline_span *spans;
    const char **names;
    int64_t lane_count, span_count, name_count;
    int64_t lane_room, span_room, name_room;
    double end;      // of the last span, microseconds
    double critical; // sum of the critical path's spans
} timeline;

// Reads a trace, and finds its critical path: from the span that ends last, again and
// again the one of its rank that had ended last when it began. (The times of ranks
// begin with their own steps, so they are not compared.) The caller frees *out, also
// after an error. TR_DATA: this is no such trace; TR_MEMORY.
tr_status timeline_read(json_t *trace, timeline *out, tr_error *err);
void timeline_free(timeline *of);

#endif
