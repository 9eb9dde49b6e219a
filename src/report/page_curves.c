// Curves as JSON: the points of each series, which are as many as the page has room
// for.
#include "report/markup.h"
#include "report/page.h"

#include <inttypes.h>

// Points of all runs together: some 30 bytes each. Curves of the loss have more. Where
// there are few for each, those that never change have two.
enum { POINTS = 20000, POINTS_LEAST = 10, POINTS_FEW = 64, LOSS_SHARE = 4, DIGITS = 6 };

typedef struct curves {
    int64_t most, most_of_loss; // points of a series
    FILE *to;
} curves;

static bool is_loss(plot_name name) {
    return name == PLOT_LOSS || name == PLOT_VALIDATION_LOSS;
}

// Neighbours are joined until there are at most so many points: `width` of the series'
// points make one.
static int64_t joined(const plot_series *s, int64_t most) {
    int64_t width = 1;
    while ((s->end + width - 1) / width > most) {
        width++;
    }
    return width;
}

static bool is_constant(const plot_series *s) {
    return s->least == s->most;
}

static plot_point join(const plot_series *s, int64_t first, int64_t width) {
    plot_point sum = {0};
    for (int64_t i = first; i < first + width && i < s->end; i++) {
        plot_series_join(&sum, &s->point[i]);
    }
    return sum;
}

typedef enum column { STEP, VALUE, LEAST, MOST } column;

static double value_of(const plot_point *p, column which) {
    return which == STEP    ? plot_point_step(p)
           : which == VALUE ? plot_point_value(p)
           : which == LEAST ? p->least
                            : p->most;
}

// The last of the points that begin every `width`.
static int64_t last_of(const plot_series *s, int64_t width) {
    return (s->end - 1) / width * width;
}

static void put_column(const curves *c, const plot_series *s, int64_t width,
                       const char *key, column which) {
    // Steps, and times of day, are long numbers.
    int digits = which == STEP || s->most > 1e6 ? 14 : DIGITS;
    const char *comma = "";
    bool ends = is_constant(s) && c->most < POINTS_FEW;
    fprintf(c->to, "\"%s\":[", key);
    for (int64_t i = 0; i < s->end; i += width) {
        plot_point p = join(s, i, width);
        bool between = ends && *comma && i != last_of(s, width);
        if (p.count > 0 && !between) {
            fputs(comma, c->to);
            markup_number(value_of(&p, which), digits, c->to);
            comma = ",";
        }
    }
    fputc(']', c->to);
}

static bool has_spread(const plot_series *s, int64_t width) {
    return s->width * width > 1 && !is_constant(s);
}

static void put_series(const curves *c, const plot_series *s, plot_name name,
                       const char *before) {
    int64_t width = joined(s, is_loss(name) ? c->most_of_loss : c->most);
    fputs(before, c->to);
    markup_json(plot_key(name), c->to);
    fprintf(c->to, ":{\"count\":%" PRId64 ",\"width\":%" PRId64 ",", s->count,
            s->width * width);
    put_column(c, s, width, "x", STEP);
    fputc(',', c->to);
    put_column(c, s, width, "y", VALUE);
    if (has_spread(s, width)) {
        fputc(',', c->to);
        put_column(c, s, width, "least", LEAST);
        fputc(',', c->to);
        put_column(c, s, width, "most", MOST);
    }
    fputc('}', c->to);
}

static void put_mark(int64_t step, const char *what, bool *first, FILE *to) {
    fprintf(to, "%s[%" PRId64 ",\"%s\"]", *first ? "" : ",", step, what);
    *first = false;
}

// Steps at which something happened; what the folder says of the run: where it was
// resumed, and of which steps there are checkpoints.
static void put_marks(const page_run *run, FILE *to) {
    static const char *const names[PLOT_EVENTS] = {"skipped", "spike", "rollback"};
    bool first = true;
    size_t number;
    const json_t *event;
    fputs("\"marks\":[", to);
    for (int i = 0; i < run->metrics->mark_count; i++) {
        const plot_mark *mark = &run->metrics->marks[i];
        put_mark(mark->step, names[mark->event], &first, to);
    }
    json_array_foreach((json_t *)run->history, number, event) {
        json_int_t step = json_integer_value(json_object_get(event, "step"));
        if (step > 0 && number < PLOT_MARKS_MAX) {
            put_mark(step, "resumed", &first, to);
        }
    }
    for (size_t i = 0; i < run->checkpoint_count && i < PLOT_MARKS_MAX; i++) {
        put_mark(run->checkpoints[i].step, "checkpoint", &first, to);
    }
    fputc(']', to);
}

static void put_run(const curves *c, const page_run *run) {
    const char *before = "";
    fputs("{\"name\":", c->to);
    markup_json(run->path, c->to);
    fputs(",\"series\":{", c->to);
    for (int i = 0; run->metrics && i < PLOT_SERIES; i++) {
        const plot_series *s = &run->metrics->series[i];
        if (s->count > 0) {
            put_series(c, s, (plot_name)i, before);
            before = ",\n";
        }
    }
    fputs("}", c->to);
    if (run->metrics) {
        fputc(',', c->to);
        put_marks(run, c->to);
    }
    fputs("}", c->to);
}

// Series that have values, those of the loss counted as often as they have more points.
static int64_t shares(const page_run *runs, int count) {
    int64_t sum = 0;
    for (int r = 0; r < count; r++) {
        for (int i = 0; runs[r].metrics && i < PLOT_SERIES; i++) {
            const plot_series *s = &runs[r].metrics->series[i];
            int share = is_loss((plot_name)i) ? LOSS_SHARE : !is_constant(s);
            sum += s->count > 0 ? share : 0;
        }
    }
    return sum > 0 ? sum : 1;
}

void page_curves(const page_run *runs, int count, FILE *to) {
    int64_t most = POINTS / shares(runs, count);
    most = most > POINTS_LEAST ? most : POINTS_LEAST;
    curves c = {most < PLOT_POINTS ? most : PLOT_POINTS, LOSS_SHARE * most, to};
    fputc('[', to);
    for (int r = 0; r < count; r++) {
        fputs(r > 0 ? ",\n" : "", to);
        put_run(&c, &runs[r]);
    }
    fputc(']', to);
}
