#include "plan/print/trace.h"

#include "base/json_writer.h"

#include <inttypes.h>

enum { TRACE_NAME_MAX = 512 };

tr_span tr__span_of(const tr_sequence *sequence, int32_t step, tr_stream stream,
                    double begin, double end) {
    const tr_plan_step *at = &sequence->steps[step];
    return (tr_span){step,     at->label.verb, at->subject,
                     at->unit, at->micro,      at->of_micro_batch,
                     stream,   begin,          end};
}

// "reduce gradients of h.3": what the step does, and to what.
static void write_name(const tr_plan *plan, const tr_plan_step *step,
                       tr_json_writer *to) {
    char name[TRACE_NAME_MAX];
    const char *verb = tr__verb_name(step->label.verb);
    const char *subject = tr__step_subject(plan, step);
    snprintf(name, sizeof name, subject ? "%s %s" : "%s", verb, subject);
    tr__json_put_text(to, "name", name);
}

static void write_span(const tr_plan *plan, int64_t rank, const tr_span *span,
                       tr_json_writer *to) {
    const tr_plan_step step = {
        .label = {.verb = span->verb}, .subject = span->subject, .unit = span->unit};
    tr__json_line(to, 0);
    tr__json_open(to, '{');
    write_name(plan, &step, to);
    tr__json_put_text(to, "cat", tr__verb_name(span->verb));
    tr__json_put_text(to, "ph", "X");
    tr__json_put_fixed(to, "ts", span->begin * 1e6);
    tr__json_put_fixed(to, "dur", (span->end - span->begin) * 1e6);
    tr__json_put_integer(to, "pid", rank);
    tr__json_put_integer(to, "tid", span->stream);
    tr__json_put_open(to, "args", '{');
    tr__json_put_integer(to, "step", span->step);
    if (span->of_micro_batch) {
        tr__json_put_integer(to, "micro_batch", span->micro);
    }
    tr__json_close(to, '}');
    tr__json_close(to, '}');
}

// What the viewer calls a rank, or one of its streams.
static void write_label(const char *what, int64_t rank, int stream, const char *label,
                        tr_json_writer *to) {
    tr__json_line(to, 0);
    tr__json_open(to, '{');
    tr__json_put_text(to, "name", what);
    tr__json_put_text(to, "ph", "M");
    tr__json_put_integer(to, "pid", rank);
    tr__json_put_integer(to, "tid", stream);
    tr__json_put_open(to, "args", '{');
    tr__json_put_text(to, "name", label);
    tr__json_close(to, '}');
    tr__json_close(to, '}');
}

static void write_labels(const tr_plan *plan, const char *what, int64_t rank,
                         tr_json_writer *to) {
    char label[TRACE_NAME_MAX];
    snprintf(label, sizeof label, "rank %" PRId64 " of %" PRId64 ", %s", rank,
             tr_mesh_ranks(&plan->request.mesh), what);
    write_label("process_name", rank, 0, label, to);
    for (int s = 0; s < TR_STREAMS; s++) {
        write_label("thread_name", rank, s, tr__stream_name((tr_stream)s), to);
    }
}

tr_status tr__trace_write(const tr_plan *plan, const char *what,
                          const tr_rank_spans *ranks, size_t count, FILE *to,
                          tr_error *err) {
    tr_json_writer w = tr__json_writer(to);
    tr__json_open(&w, '{');
    tr__json_put_text(&w, "displayTimeUnit", "ms");
    tr__json_put_open(&w, "traceEvents", '[');
    for (size_t r = 0; r < count; r++) {
        write_labels(plan, what, ranks[r].rank, &w);
        for (size_t i = 0; i < ranks[r].count; i++) {
            write_span(plan, ranks[r].rank, &ranks[r].spans[i], &w);
        }
    }
    tr__json_line(&w, 0);
    tr__json_close(&w, ']');
    tr__json_close(&w, '}');
    fputc('\n', to);
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the trace") : TR_OK;
}
