// Where the time of a simulated step goes, in a line for each stream.
#include "planner/planner.h"

#include <string.h>

// One letter for a kind, so that a line can be read.
static const char letters[TR_STEP_KINDS] = {
    [TR_STEP_load] = 'l',
    [TR_STEP_fetch] = 'F',
    [TR_STEP_gather] = 'G',
    [TR_STEP_forward] = 'f',
    [TR_STEP_recompute] = 'r',
    [TR_STEP_pack] = 'p',
    [TR_STEP_merge] = 'm',
    [TR_STEP_backward] = 'b',
    [TR_STEP_accumulate] = 'o',
    [TR_STEP_reduce] = 'R',
    [TR_STEP_evict] = 'E',
    [TR_STEP_unload] = '.',
    [TR_STEP_read] = 'I',
    [TR_STEP_write] = 'O',
    [TR_STEP_gradient_squares] = 's',
    [TR_STEP_clear] = '.',
    [TR_STEP_norm] = 'n',
    [TR_STEP_update] = 'u',
    [TR_STEP_add] = 'a',
    [TR_STEP_report] = '.',
    [TR_STEP_decide] = '.',
    [TR_STEP_micro_norm] = 'g',
    [TR_STEP_micro_norm_tied] = 'g',
    [TR_STEP_direction_norms] = 'd',
    [TR_STEP_tensor_norms] = 't',
    [TR_STEP_track] = 'k',
};

// Seconds of [begin, end) that lie in column c.
static double within(const tr_span *span, double width, int c) {
    double begin = width * c, end = begin + width;
    begin = span->begin > begin ? span->begin : begin;
    end = span->end < end ? span->end : end;
    return end > begin ? end - begin : 0;
}

static int column_of(double seconds, double width) {
    int c = (int)(seconds / width);
    return c < 0 ? 0 : c >= TR_TIMELINE_COLUMNS ? TR_TIMELINE_COLUMNS - 1 : c;
}

static void draw_stream(const tr_simulated *s, tr_stream stream, tr_timeline *out) {
    double at[TR_TIMELINE_COLUMNS][TR_STEP_KINDS] = {{0}};
    double width = out->seconds / TR_TIMELINE_COLUMNS;
    for (size_t i = 0; i < s->span_count; i++) {
        const tr_span *span = &s->spans[i];
        const tr_plan_step *step =
            &s->plan->sequences[TR_SEQUENCE_TRAIN].steps[span->step];
        if (span->stream != stream) {
            continue;
        }
        out->busy[stream] += span->end - span->begin;
        for (int c = column_of(span->begin, width); c <= column_of(span->end, width);
             c++) {
            at[c][step->kind] += within(span, width, c);
        }
    }
    if (out->busy[stream] == 0) {
        return;
    }
    for (int c = 0; c < TR_TIMELINE_COLUMNS; c++) {
        int most = 0;
        double all = 0;
        for (int k = 0; k < TR_STEP_KINDS; k++) {
            most = at[c][k] > at[c][most] ? k : most;
            all += at[c][k];
        }
        out->column[stream][c] = all > width / 2 ? letters[most] : '.';
    }
}

void tr__timeline_draw(const tr_simulated *simulated, tr_timeline *out) {
    *out = (tr_timeline){.seconds = simulated->result.seconds};
    memcpy(out->kind, simulated->kind_seconds, sizeof out->kind);
    for (int stream = 0; stream < TR_STREAMS && out->seconds > 0; stream++) {
        draw_stream(simulated, (tr_stream)stream, out);
    }
}
