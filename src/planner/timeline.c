// Where the time of a simulated step goes, in a line for each stream.
#include "planner/planner.h"

#include <string.h>

// One letter for a kind, so that a line can be read.
static const char letters[TR_VERBS] = {
    [TR_VERB_load] = 'l',
    [TR_VERB_fetch] = 'F',
    [TR_VERB_gather] = 'G',
    [TR_VERB_forward] = 'f',
    [TR_VERB_recompute] = 'r',
    [TR_VERB_pack] = 'p',
    [TR_VERB_merge] = 'm',
    [TR_VERB_backward] = 'b',
    [TR_VERB_accumulate] = 'o',
    [TR_VERB_reduce] = 'R',
    [TR_VERB_evict] = 'E',
    [TR_VERB_unload] = '.',
    [TR_VERB_read] = 'I',
    [TR_VERB_write] = 'O',
    [TR_VERB_gradient_squares] = 's',
    [TR_VERB_clear] = '.',
    [TR_VERB_norm] = 'n',
    [TR_VERB_square_sums] = 'n',
    [TR_VERB_update] = 'u',
    [TR_VERB_add] = 'a',
    [TR_VERB_report] = '.',
    [TR_VERB_decide] = '.',
    [TR_VERB_micro_norm] = 'g',
    [TR_VERB_micro_norm_tied] = 'g',
    [TR_VERB_direction_norms] = 'd',
    [TR_VERB_direction] = 'd',
    [TR_VERB_tensor_sums] = 't',
    [TR_VERB_tensor_norms] = 't',
    [TR_VERB_track] = 'k',
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
    double at[TR_TIMELINE_COLUMNS][TR_VERBS] = {{0}};
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
            at[c][step->label.verb] += within(span, width, c);
        }
    }
    if (out->busy[stream] == 0) {
        return;
    }
    for (int c = 0; c < TR_TIMELINE_COLUMNS; c++) {
        int most = 0;
        double all = 0;
        for (int k = 0; k < TR_VERBS; k++) {
            most = at[c][k] > at[c][most] ? k : most;
            all += at[c][k];
        }
        out->column[stream][c] = all > width / 2 ? letters[most] : '.';
    }
}

void tr__timeline_draw(const tr_simulated *simulated, tr_timeline *out) {
    *out = (tr_timeline){.seconds = simulated->result.seconds};
    memcpy(out->kind, simulated->verb_seconds, sizeof out->kind);
    for (int stream = 0; stream < TR_STREAMS && out->seconds > 0; stream++) {
        draw_stream(simulated, (tr_stream)stream, out);
    }
}
