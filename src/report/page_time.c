// The time of a step: tables of what streams do and of the critical path, and the spans
// as JSON.
#include "report/markup.h"
#include "report/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// ---- tables

static void put_share(double part, double whole, FILE *to) {
    fprintf(to, "<td>%.1f %%</td>", whole > 0 ? 100 * part / whole : 0);
}

static const timeline_lane *find(const timeline *in, const timeline_lane *lane) {
    for (int64_t i = 0; in && i < in->lane_count; i++) {
        if (in->lanes[i].rank == lane->rank &&
            strcmp(in->lanes[i].stream, lane->stream) == 0) {
            return &in->lanes[i];
        }
    }
    return NULL;
}

static void put_busy(const timeline *of, const timeline_lane *lane, FILE *to) {
    if (lane) {
        fprintf(to, "<td>%.3f</td>", lane->busy / 1e3);
        put_share(of->end - lane->busy, of->end, to);
    } else {
        fputs("<td>-</td><td>-</td>", to);
    }
}

static void put_lane(const page_run *run, const timeline_lane *lane, FILE *to) {
    fprintf(to, "<tr><th scope=\"row\">rank %" PRId64 ", ", lane->rank);
    markup_text(lane->stream, to);
    fputs("</th>", to);
    put_busy(run->planned, find(run->planned, lane), to);
    put_busy(run->traced, find(run->traced, lane), to);
    fputs("</tr>\n", to);
}

static void put_lanes(const page_run *run, FILE *to) {
    fputs("<table class=\"ledger\"><caption>streams, in milliseconds and shares of the "
          "step</caption>\n<tr><th scope=\"col\">stream</th><th scope=\"col\">planned"
          "</th><th scope=\"col\">idle</th><th scope=\"col\">traced</th><th "
          "scope=\"col\">idle</th></tr>\n",
          to);
    for (int64_t i = 0; run->traced && i < run->traced->lane_count; i++) {
        put_lane(run, &run->traced->lanes[i], to);
    }
    for (int64_t i = 0; run->planned && i < run->planned->lane_count; i++) {
        if (!find(run->traced, &run->planned->lanes[i])) {
            put_lane(run, &run->planned->lanes[i], to);
        }
    }
    fputs("</table>\n", to);
}

// What the critical path consists of, by kind; what is left of the step are gaps.
static void put_path(const timeline *of, const char *name, FILE *to) {
    fprintf(to,
            "<table class=\"ledger critical\"><caption>critical path, %s: %.3f "
            "ms</caption>\n",
            name, of->end / 1e3);
    for (int64_t k = 0; k < of->name_count; k++) {
        double sum = 0;
        int64_t spans = 0;
        for (int64_t i = 0; i < of->span_count; i++) {
            bool is = of->spans[i].critical && of->spans[i].kind == k;
            sum += is ? of->spans[i].length : 0;
            spans += is;
        }
        if (spans > 0) {
            fputs("<tr><th scope=\"row\">", to);
            markup_text(of->names[k], to);
            fprintf(to, ", %" PRId64 " of them</th><td>%.3f</td>", spans, sum / 1e3);
            put_share(sum, of->end, to);
            fputs("</tr>\n", to);
        }
    }
    fprintf(to, "<tr><th scope=\"row\">gaps between them</th><td>%.3f</td>",
            (of->end - of->critical) / 1e3);
    put_share(of->end - of->critical, of->end, to);
    fputs("</tr>\n</table>\n", to);
}

void page_time(const page_run *run, FILE *to) {
    fputs("<div class=\"tables\">\n", to);
    put_lanes(run, to);
    if (run->planned) {
        put_path(run->planned, "planned", to);
    }
    if (run->traced) {
        put_path(run->traced, "traced", to);
    }
    fputs("</div>\n", to);
}

// ---- spans

static int longest_first(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one < other) - (one > other);
}

// The length from which a page has room for spans; negative: there is no memory.
static double shortest(const timeline *of, int64_t most) {
    if (of->span_count <= most) {
        return 0;
    }
    double *lengths = malloc((size_t)of->span_count * sizeof *lengths);
    if (!lengths) {
        return -1;
    }
    for (int64_t i = 0; i < of->span_count; i++) {
        lengths[i] = of->spans[i].length;
    }
    qsort(lengths, (size_t)of->span_count, sizeof *lengths, longest_first);
    double least = lengths[most - 1];
    free(lengths);
    return least;
}

static void put_texts(const timeline *of, FILE *to) {
    fprintf(to, "{\"end\":%.3f,\"lanes\":[", of->end);
    for (int64_t i = 0; i < of->lane_count; i++) {
        fprintf(to, "%s[%" PRId64 ",", i > 0 ? "," : "", of->lanes[i].rank);
        markup_json(of->lanes[i].stream, to);
        fputc(']', to);
    }
    fputs("],\"names\":[", to);
    for (int64_t i = 0; i < of->name_count; i++) {
        fputs(i > 0 ? "," : "", to);
        markup_json(of->names[i], to);
    }
    fputs("],\"spans\":[", to);
}

static tr_status put_timeline(const timeline *of, int64_t most, FILE *to,
                              tr_error *err) {
    double least = shortest(of, most);
    int64_t put = 0;
    if (least < 0) {
        return tr_fail(err, TR_MEMORY, "no memory for the page");
    }
    put_texts(of, to);
    for (int64_t i = 0; i < of->span_count && put < most; i++) {
        const timeline_span *s = &of->spans[i];
        if (s->length >= least) {
            fprintf(to, "%s[%d,%d,%d,%.3f,%.3f,%" PRId64 ",%" PRId64 ",%d]",
                    put > 0 ? ",\n" : "", s->lane, s->name, s->kind, s->begin,
                    s->length, s->step, s->micro_batch, s->critical);
            put++;
        }
    }
    fprintf(to, "],\"left_out\":%" PRId64 "}", of->span_count - put);
    return TR_OK;
}

tr_status page_times(const page_run *runs, int count, FILE *to, tr_error *err) {
    enum { SPANS = 3000, SPANS_LEAST = 20 };
    int64_t most = SPANS / (2 * count);
    tr_status status = TR_OK;
    most = most > SPANS_LEAST ? most : SPANS_LEAST;
    fputc('[', to);
    for (int r = 0; r < count && status == TR_OK; r++) {
        const timeline *const both[] = {runs[r].planned, runs[r].traced};
        static const char *const names[] = {"{\"planned\":", ",\"traced\":"};
        fputs(r > 0 ? ",\n" : "", to);
        for (int i = 0; i < 2 && status == TR_OK; i++) {
            fputs(names[i], to);
            if (both[i]) {
                status = put_timeline(both[i], most, to, err);
            } else {
                fputs("null", to);
            }
        }
        fputc('}', to);
    }
    fputc(']', to);
    return status;
}
