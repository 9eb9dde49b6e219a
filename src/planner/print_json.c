// What the planner came to, as one JSON object.
#include "base/text.h"
#include "planner/planner.h"

#include <inttypes.h>

static void print_size(const char *name, int64_t bytes, FILE *to) {
    if (bytes == TR_UNLIMITED) {
        fprintf(to, "\"%s\": null", name);
    } else {
        fprintf(to, "\"%s\": %" PRId64, name, bytes);
    }
}

static void print_option(const tr_planner_option *o, FILE *to) {
    fprintf(to, "{");
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        const tr_dimension *dimension = &tr__dimensions[d];
        if (dimension->kind == TR_SPACE) {
            fprintf(to, "\"%s\": \"%s\", ", dimension->name,
                    tr_space_name((tr_space)o->value[d]));
        } else if (dimension->kind == TR_CLASSES) {
            char words[96];
            tr__dimension_value(dimension, o->value[d], words, sizeof words);
            fprintf(to, "\"%s\": \"%s\", ", dimension->name, words);
        } else if (dimension->kind == TR_YES) {
            fprintf(to, "\"%s\": %s, ", dimension->name,
                    o->value[d] ? "true" : "false");
        } else {
            fprintf(to, "\"%s\": %" PRId64 ", ", dimension->name, o->value[d]);
        }
    }
    fprintf(to, "\"seconds\": %.9g, \"bytes\": {", o->seconds);
    for (int s = 0; s < TR_SPACES; s++) {
        fprintf(to, "%s\"%s\": %" PRId64, s ? ", " : "", tr_space_name((tr_space)s),
                o->bytes[s]);
    }
    fprintf(to, "}}");
}

static void print_free(const tr_planned *p, FILE *to) {
    const char *comma = "";
    fprintf(to, "\"chosen\": [");
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        if (p->request.free >> d & 1) {
            fprintf(to, "%s\"%s\"", comma, tr__dimensions[d].key);
            comma = ", ";
        }
    }
    fprintf(to, "], ");
}

static void print_timeline(const tr_timeline *t, FILE *to) {
    const char *comma = "";
    fprintf(to, "\"timeline\": {\"seconds\": %.9g, \"streams\": {", t->seconds);
    for (int s = 0; s < TR_STREAMS; s++) {
        if (t->busy[s] > 0) {
            fprintf(to, "%s\"%s\": {\"seconds\": %.9g, \"columns\": \"%s\"}", comma,
                    tr__stream_name((tr_stream)s), t->busy[s], t->column[s]);
            comma = ", ";
        }
    }
    fprintf(to, "}, \"kinds\": {");
    comma = "";
    for (int k = 0; k < TR_STEP_KINDS; k++) {
        if (t->kind[k] > 0) {
            fprintf(to, "%s\"%s\": %.9g", comma,
                    tr__plan_step_name((tr_plan_step_kind)k), t->kind[k]);
            comma = ", ";
        }
    }
    fprintf(to, "}}");
}

static void print_optional(const char *name, bool there, const tr_planner_option *o,
                           FILE *to) {
    fprintf(to, ",\n    \"%s\": ", name);
    if (there) {
        print_option(o, to);
    } else {
        fprintf(to, "null");
    }
}

static void print_binding(const tr_planned *p, FILE *to) {
    tr_limits limits = tr__planner_limits(&p->request);
    int64_t excess[TR_BUDGETS] = {0};
    const char *comma = "";
    if (p->has_faster) {
        tr__limits_excess(&limits, p->faster.bytes, excess);
    }
    fprintf(to, ",\n    \"binding\": {"); // bytes by which it would have to grow
    for (int b = 0; b < TR_BUDGETS; b++) {
        if (excess[b] > 0) {
            fprintf(to, "%s\"%s\": %" PRId64, comma, tr__budget_word(b), excess[b]);
            comma = ", ";
        }
    }
    fprintf(to, "}");
}

tr_status tr_planned_print_json(const tr_planned *p, FILE *to, tr_error *err) {
    fprintf(to, "{\"machine\": \"");
    tr__print_escaped(p->machine, to);
    fprintf(to, "\", \"kept\": %s, ", p->kept ? "true" : "false");
    print_free(p, to);
    fprintf(to, "\"plans\": %zu, \"plans_made\": %zu,\n    \"budgets\": {", p->points,
            p->plans);
    for (int s = 0; s < TR_SPACES; s++) {
        print_size(tr_space_name((tr_space)s), p->request.budget[s], to);
        fprintf(to, ", ");
    }
    print_size("device and host", p->request.together, to);
    fprintf(to, ", \"process\": %" PRId64 "}", TR_PROCESS_BYTES);
    print_optional("choice", true, &p->choice, to);
    fprintf(to, ",\n    ");
    print_timeline(&p->timeline, to);
    fprintf(to, ",\n    \"runners_up\": [");
    for (size_t i = 0; i < p->runner_count; i++) {
        fprintf(to, i ? ",\n        " : "\n        ");
        print_option(&p->runner[i], to);
    }
    fprintf(to, "]");
    print_optional("faster", p->has_faster, &p->faster, to);
    print_binding(p, to);
    print_optional("smallest", p->has_smallest, &p->smallest, to);
    fprintf(to, ",\n    \"smallest_at\": \"");
    tr__print_escaped(p->smallest_at, to);
    fprintf(to, "\"}");
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}
