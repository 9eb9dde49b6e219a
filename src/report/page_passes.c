// Losses of runs beside each other: which is the lowest, and where it passes the
// others.
#include "report/markup.h"
#include "report/page.h"

#include <inttypes.h>
#include <math.h>

// The smoothed curve at a step within it, in a line between its points.
static double value_at(const plot_series *s, double step) {
    double before = NAN, before_step = 0;
    for (int64_t i = 0; i < s->end; i++) {
        const plot_point *p = &s->point[i];
        if (p->count == 0) {
            continue;
        }
        double at = plot_point_step(p);
        if (at >= step) {
            double share = isnan(before) || at <= before_step
                               ? 1
                               : (step - before_step) / (at - before_step);
            return isnan(before) ? p->smooth : before + share * (p->smooth - before);
        }
        before = p->smooth;
        before_step = at;
    }
    return before;
}

typedef struct meeting {
    double from, to; // the steps that both have; from > to: none
    double a, b;     // their losses at the last of these
    int64_t crossings;
    double last_crossing; // the step
} meeting;

static meeting meet(const plot_series *a, const plot_series *b) {
    enum { LOOKS = 1000 };
    meeting m = {.from = fmax(a->first_step, b->first_step),
                 .to = fmin(a->last_step, b->last_step)};
    if (m.from > m.to) {
        return m;
    }
    double steps = m.to - m.from, before = 0;
    int looks = steps < LOOKS ? (int)steps : LOOKS;
    for (int i = 0; i <= looks; i++) {
        double step = looks > 0 ? floor(m.from + steps * i / looks) : m.to;
        m.a = value_at(a, step);
        m.b = value_at(b, step);
        double now = m.a - m.b;
        if (now * before < 0) {
            m.crossings++;
            m.last_crossing = step;
        }
        before = now != 0 ? now : before;
    }
    return m;
}

static const plot_series *losses(const page_run *run, plot_name which) {
    const plot_series *s = run->metrics ? &run->metrics->series[which] : NULL;
    return s && s->count > 0 ? s : NULL;
}

static double end_of(const plot_series *s) {
    return s->end > 0 ? s->point[s->end - 1].smooth : NAN;
}

// Losses of other data, or over other classes, are of different things.
static const char *remark(const page_run *a, const page_run *b) {
    const json_t *one = a->settings, *other = b->settings;
    if (!one || !other) {
        return "the settings of one are not known";
    }
    if (!json_equal(json_object_get(one, "data"), json_object_get(other, "data"))) {
        return "the data settings differ: the losses are of different samples";
    }
    const json_t *classes =
                     json_object_get(json_object_get(one, "model"), "vocab_size"),
                 *others =
                     json_object_get(json_object_get(other, "model"), "vocab_size");
    return classes && others && !json_equal(classes, others)
               ? "the vocabularies differ: the losses are not of the same scale"
               : "";
}

static void put_where(const meeting *m, FILE *to) {
    bool below = m->a < m->b;
    if (m->crossings == 0) {
        fputs(below ? "below it all along" : "above it all along", to);
    } else {
        fprintf(to, "%s it from step %.0f on; the curves cross %" PRId64 " time%s",
                below ? "below" : "above", m->last_crossing, m->crossings,
                m->crossings == 1 ? "" : "s");
    }
}

static void put_row(const page_run *lowest, const page_run *run, plot_name which,
                    FILE *to) {
    meeting m = meet(losses(lowest, which), losses(run, which));
    fputs("<tr><th scope=\"row\">", to);
    markup_text(run->path, to);
    if (m.from > m.to) {
        fputs("</th><td>-</td><td>-</td><td>-</td><td>they have no step in common</td>",
              to);
    } else {
        fprintf(to, "</th><td>%.0f</td><td>%.5g</td><td>%.5g</td><td>", m.to, m.b, m.a);
        put_where(&m, to);
        fputs("</td>", to);
    }
    fputs("<td>", to);
    markup_text(remark(lowest, run), to);
    fputs("</td></tr>\n", to);
}

static void put_table(const page_run *runs, int count, plot_name which, FILE *to) {
    int lowest = -1, known = 0;
    for (int r = 0; r < count; r++) {
        const plot_series *s = losses(&runs[r], which);
        known += s != NULL;
        bool lower =
            s && (lowest < 0 || end_of(s) < end_of(losses(&runs[lowest], which)));
        lowest = lower ? r : lowest;
    }
    if (known < 2) {
        return;
    }
    fprintf(to, "<div class=\"scroll\"><table class=\"passes\"><caption>%s, smoothed: ",
            which == PLOT_LOSS ? "loss" : "validation loss");
    markup_text(runs[lowest].path, to);
    fputs(" ends lowest</caption>\n<tr><th scope=\"col\">run</th><th scope=\"col\">at "
          "step</th><th scope=\"col\">its loss</th><th scope=\"col\">the lowest's</th>"
          "<th scope=\"col\">the lowest is</th><th scope=\"col\">remark</th></tr>\n",
          to);
    for (int r = 0; r < count; r++) {
        if (r != lowest && losses(&runs[r], which)) {
            put_row(&runs[lowest], &runs[r], which, to);
        }
    }
    fputs("</table></div>\n", to);
}

void page_passes(const page_run *runs, int count, FILE *to) {
    put_table(runs, count, PLOT_LOSS, to);
    put_table(runs, count, PLOT_VALIDATION_LOSS, to);
}
