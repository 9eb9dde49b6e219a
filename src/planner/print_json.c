// What the planner came to, as one JSON object.
#include "base/json_writer.h"
#include "plan/flow/request.h"
#include "planner/planner.h"

static void put_bytes(const char *key, int64_t bytes, tr_json_writer *to) {
    tr__json_key(to, key);
    if (bytes == TR_UNLIMITED) {
        tr__json_add_null(to);
    } else {
        tr__json_add_integer(to, bytes);
    }
}

static void put_dimension(const tr_plan_setting *dimension, int64_t value,
                          tr_json_writer *to) {
    char words[96];
    switch (dimension->kind) {
    case TR_PLACE:
        tr__json_put_text(to, dimension->name, tr_space_name((tr_space)value));
        return;
    case TR_CLASSES:
    case TR_ORDER:
        tr__plan_setting_show(dimension, value, words, sizeof words);
        tr__json_put_text(to, dimension->name, words);
        return;
    case TR_YES:
        tr__json_put_bool(to, dimension->name, value != 0);
        return;
    default:
        tr__json_put_integer(to, dimension->name, value);
        return;
    }
}

static void write_option(const tr_planner_option *o, tr_json_writer *to) {
    tr__json_open(to, '{');
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        put_dimension(&tr__plan_settings[d], o->value[d], to);
    }
    tr__json_put_real(to, "seconds", o->seconds);
    tr__json_put_open(to, "bytes", '{');
    for (int s = 0; s < TR_SPACES; s++) {
        tr__json_put_integer(to, tr_space_name((tr_space)s), o->bytes[s]);
    }
    tr__json_close(to, '}');
    tr__json_close(to, '}');
}

static void write_free(const tr_planned *p, tr_json_writer *to) {
    tr__json_put_open(to, "chosen", '[');
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        if (p->request.free >> d & 1) {
            tr__json_add_text(to, tr__plan_settings[d].key);
        }
    }
    tr__json_close(to, ']');
}

static void write_budgets(const tr_planned *p, tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_put_open(to, "budgets", '{');
    for (int s = 0; s < TR_SPACES; s++) {
        put_bytes(tr_space_name((tr_space)s), p->request.budget[s], to);
    }
    put_bytes("device and host", p->request.together, to);
    tr__json_put_integer(to, "process", tr__request_process(&p->request.plan));
    tr__json_close(to, '}');
}

static void write_timeline(const tr_timeline *t, tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_put_open(to, "timeline", '{');
    tr__json_put_real(to, "seconds", t->seconds);
    tr__json_put_open(to, "streams", '{');
    for (int s = 0; s < TR_STREAMS; s++) {
        if (t->busy[s] > 0) {
            tr__json_put_open(to, tr__stream_name((tr_stream)s), '{');
            tr__json_put_real(to, "seconds", t->busy[s]);
            tr__json_put_text(to, "columns", t->column[s]);
            tr__json_close(to, '}');
        }
    }
    tr__json_close(to, '}');
    tr__json_put_open(to, "kinds", '{');
    for (int k = 0; k < TR_VERBS; k++) {
        if (t->kind[k] > 0) {
            tr__json_put_real(to, tr__verb_name((tr_verb)k), t->kind[k]);
        }
    }
    tr__json_close(to, '}');
    tr__json_close(to, '}');
}

// o: NULL: there is none.
static void put_option(const char *key, const tr_planner_option *o,
                       tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_key(to, key);
    if (o) {
        write_option(o, to);
    } else {
        tr__json_add_null(to);
    }
}

static void write_runners(const tr_planned *p, tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_put_open(to, "runners_up", '[');
    for (size_t i = 0; i < p->runner_count; i++) {
        tr__json_line(to, 8);
        write_option(&p->runner[i], to);
    }
    tr__json_close(to, ']');
}

// The bytes by which budgets would have to grow.
static void write_binding(const tr_planned *p, tr_json_writer *to) {
    tr_limits limits = tr__planner_limits(&p->request);
    int64_t excess[TR_BUDGETS] = {0};
    if (p->has_faster) {
        tr__limits_excess(&limits, p->faster.bytes, excess);
    }
    tr__json_line(to, 4);
    tr__json_put_open(to, "binding", '{');
    for (int b = 0; b < TR_BUDGETS; b++) {
        if (excess[b] > 0) {
            tr__json_put_integer(to, tr__budget_name(b), excess[b]);
        }
    }
    tr__json_close(to, '}');
}

tr_status tr__planned_print_json(const tr_planned *p, FILE *to, tr_error *err) {
    tr_json_writer w = tr__json_writer(to);
    tr__json_open(&w, '{');
    tr__json_put_text(&w, "machine", p->machine);
    tr__json_put_bool(&w, "kept", p->kept);
    write_free(p, &w);
    tr__json_put_integer(&w, "plans", (int64_t)p->points);
    tr__json_put_integer(&w, "plans_made", (int64_t)p->plans);
    write_budgets(p, &w);
    put_option("choice", &p->choice, &w);
    write_timeline(&p->timeline, &w);
    write_runners(p, &w);
    put_option("faster", p->has_faster ? &p->faster : NULL, &w);
    write_binding(p, &w);
    put_option("smallest", p->has_smallest ? &p->smallest : NULL, &w);
    tr__json_line(&w, 4);
    tr__json_put_text(&w, "smallest_at", p->smallest_at);
    tr__json_close(&w, '}');
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}
