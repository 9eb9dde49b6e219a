#include "plan/trace.h"

#include "base/text.h"

#include <inttypes.h>

tr_span tr__span_of(const tr_sequence *sequence, int32_t step, tr_stream stream,
                    double begin, double end) {
    const tr_plan_step *at = &sequence->steps[step];
    return (tr_span){step, at->kind, at->part, at->unit, at->micro, stream, begin, end};
}

static void write_span(const tr_plan *plan, int64_t rank, const tr_span *span,
                       FILE *to) {
    const tr_plan_step step = {.kind = span->kind,
                               .part = span->part,
                               .unit = span->unit,
                               .micro = span->micro};
    const char *kind = tr__plan_step_name(span->kind);
    const char *subject = tr__step_subject(plan, &step);
    fprintf(to, ",\n{\"name\": \"%s", kind);
    if (subject) {
        fputc(' ', to);
        tr__print_escaped(subject, to);
    }
    fprintf(to,
            "\", \"cat\": \"%s\", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, "
            "\"pid\": %" PRId64 ", \"tid\": %d, \"args\": {\"step\": %d",
            kind, span->begin * 1e6, (span->end - span->begin) * 1e6, rank,
            (int)span->stream, (int)span->step);
    if (tr__step_is_of_micro_batch(&step)) {
        fprintf(to, ", \"micro_batch\": %" PRId64, step.micro);
    }
    fprintf(to, "}}");
}

static void write_names(const tr_plan *plan, const char *what, int64_t rank, bool first,
                        FILE *to) {
    fprintf(to,
            "%s{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %" PRId64
            ", \"tid\": 0, \"args\": {\"name\": \"rank %" PRId64 " of %" PRId64 ", ",
            first ? "" : ",\n", rank, rank, plan->request.ranks);
    tr__print_escaped(what, to);
    fprintf(to, "\"}}");
    for (int s = 0; s < TR_STREAMS; s++) {
        fprintf(to,
                ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %" PRId64
                ", \"tid\": %d, \"args\": {\"name\": \"%s\"}}",
                rank, s, tr__stream_name((tr_stream)s));
    }
}

tr_status tr__trace_write(const tr_plan *plan, const char *what,
                          const tr_rank_spans *ranks, size_t count, FILE *to,
                          tr_error *err) {
    fprintf(to, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (size_t r = 0; r < count; r++) {
        write_names(plan, what, ranks[r].rank, r == 0, to);
        for (size_t i = 0; i < ranks[r].count; i++) {
            write_span(plan, ranks[r].rank, &ranks[r].spans[i], to);
        }
    }
    fprintf(to, "\n]}\n");
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the trace") : TR_OK;
}
