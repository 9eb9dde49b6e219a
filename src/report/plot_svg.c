// The picture: one large panel and small ones below, two or three side by side.
#include "report/markup.h"
#include "report/plot.h"

#include <inttypes.h>
#include <string.h>

enum {
    WIDTH = 960,
    MARGIN = 20,
    LEFT = 56, // of a panel: room for the numbers of its axis
    HEAD = 30, // above: room for its title
    FOOT = 26, // below: room for the steps
    LARGE = 300,
    SMALL = 150,
    LINE = 18,
    COLORS = 8,
};

// Light and dark, for runs one after the other.
static const char *const colors[COLORS][2] = {
    {"#1f6fd1", "#62a8f7"}, {"#d1570a", "#f5955a"}, {"#17845a", "#4fc793"},
    {"#b0306a", "#ec80b2"}, {"#7a52c7", "#b597f2"}, {"#8a6d00", "#d6b84a"},
    {"#0d8593", "#4cc5d4"}, {"#c0392b", "#f27d6e"},
};

typedef struct drawing {
    const plot_run *const *runs;
    int count;
    FILE *to;
} drawing;

typedef struct frame {
    double left, top, width, height; // of the curves
    plot_axis x, y;
} frame;

static void put_style(FILE *to) {
    fprintf(to, "<style>\n"
                "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,"
                "sans-serif;font-size:11px;fill:#57606a}\n"
                ".t{font-size:13px;font-weight:600;fill:#1f2328}\n"
                ".n{font-size:12px;fill:#1f2328}\n"
                ".bg{fill:#ffffff}.g{stroke:#d8dee4;stroke-width:1}\n"
                ".l{fill:none;stroke-width:1.8;stroke-linejoin:round;"
                "stroke-linecap:round}\n"
                ".r{fill:none;stroke-width:1;stroke-opacity:.35}\n"
                ".b{stroke:none;fill-opacity:.14}\n"
                ".v{fill:none;stroke-width:1.4;stroke-dasharray:5 3}\n");
    for (int scheme = 0; scheme < 2; scheme++) {
        fprintf(to, "%s",
                scheme ? "@media (prefers-color-scheme:dark){\n"
                         "text{fill:#9198a1}.t,.n{fill:#f0f6fc}\n"
                         ".bg{fill:#0d1117}.g{stroke:#30363d}\n"
                       : "");
        for (int c = 0; c < COLORS; c++) {
            fprintf(to, ".s%d{stroke:%s}.f%d{fill:%s}\n", c, colors[c][scheme], c,
                    colors[c][scheme]);
        }
    }
    fprintf(to, "}\n</style>\n");
}

static double x_of(const frame *f, double step) {
    return f->left + f->width * plot_axis_place(&f->x, step);
}

static double y_of(const frame *f, double value) {
    return f->top + f->height * (1 - plot_axis_place(&f->y, value));
}

static void put_axes(const drawing *d, const frame *f) {
    char text[PLOT_TICK_TEXT];
    for (int i = 0; i < f->y.ticks; i++) {
        double y = y_of(f, f->y.tick[i]);
        plot_axis_text(f->y.tick[i], text);
        fprintf(d->to,
                "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                f->left, y, f->left + f->width, y, f->left - 6, y + 3.5, text);
    }
    double after = -1; // where the label before ends
    for (int i = 0; i < f->x.ticks; i++) {
        double x = x_of(f, f->x.tick[i]);
        if (f->x.tick[i] > f->x.to || x < after) {
            continue;
        }
        plot_axis_text(f->x.tick[i], text);
        after = x + 7 * (double)strlen(text) + 12;
        fprintf(d->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                x, f->top + f->height + 16, text);
    }
}

// Least and most of what points hold together, as a band.
static void put_band(const drawing *d, const frame *f, const plot_series *s,
                     int color) {
    if (s->width == 1) {
        return;
    }
    fprintf(d->to, "<path class=\"b f%d\" d=\"", color);
    char command = 'M';
    for (int64_t i = 0; i < s->end; i++) {
        if (s->point[i].count > 0) {
            fprintf(d->to, "%c%.1f %.1f", command,
                    x_of(f, plot_point_step(&s->point[i])), y_of(f, s->point[i].most));
            command = 'L';
        }
    }
    for (int64_t i = s->end; i-- > 0;) {
        if (s->point[i].count > 0) {
            fprintf(d->to, "L%.1f %.1f", x_of(f, plot_point_step(&s->point[i])),
                    y_of(f, s->point[i].least));
        }
    }
    fprintf(d->to, "Z\"/>\n");
}

static void put_dot(const drawing *d, const frame *f, const plot_point *p, int color) {
    fprintf(d->to, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"/>\n", color,
            x_of(f, plot_point_step(p)), y_of(f, plot_point_value(p)));
}

static void put_curve(const drawing *d, const frame *f, const plot_series *s,
                      const char *class, bool smooth, int color) {
    char command = 'M';
    if (s->count == 0) {
        return;
    }
    fprintf(d->to, "<path class=\"%s s%d\" d=\"", class, color);
    for (int64_t i = 0; i < s->end; i++) {
        const plot_point *p = &s->point[i];
        if (p->count > 0) {
            fprintf(d->to, "%c%.1f %.1f", command, x_of(f, plot_point_step(p)),
                    y_of(f, smooth ? p->smooth : plot_point_value(p)));
            command = 'L';
        }
    }
    fprintf(d->to, "\"/>\n");
}

static void put_validation(const drawing *d, const frame *f, const plot_series *s,
                           int color) {
    enum { DOTS_MAX = 40 };
    int64_t points = 0;
    put_curve(d, f, s, "v", false, color);
    for (int64_t i = 0; i < s->end; i++) {
        points += s->point[i].count > 0;
    }
    for (int64_t i = 0; i < s->end && points <= DOTS_MAX; i++) {
        if (s->point[i].count > 0) {
            put_dot(d, f, &s->point[i], color);
        }
    }
}

static void put_curves(const drawing *d, const plot_panel *panel, const frame *f) {
    for (int r = 0; r < d->count; r++) {
        const plot_series *s = &d->runs[r]->series[panel->raw];
        int color = r % COLORS;
        if (panel->smooths) {
            put_band(d, f, s, color);
            put_curve(d, f, s, "r", false, color);
        }
        put_curve(d, f, s, "l", panel->smooths, color);
        if (s->count == 1) {
            put_dot(d, f, &s->point[s->end - 1], color);
        }
    }
    for (int r = 0; r < d->count && panel->validation != PLOT_SERIES; r++) {
        put_validation(d, f, &d->runs[r]->series[panel->validation], r % COLORS);
    }
}

static bool has_validation(const drawing *d, const plot_panel *panel) {
    bool any = false;
    for (int r = 0; r < d->count && panel->validation != PLOT_SERIES; r++) {
        any = any || d->runs[r]->series[panel->validation].count > 0;
    }
    return any;
}

static bool put_panel(const drawing *d, const plot_panel *panel, double left,
                      double top, double width, double height) {
    frame f = {.left = left + LEFT,
               .top = top + HEAD,
               .width = width - LEFT - 8,
               .height = height - HEAD - FOOT};
    plot_room room = {(int)(f.width / 100), height > SMALL ? 6 : 3, false};
    if (!plot_panel_axes(panel, d->runs, d->count, room, &f.x, &f.y)) {
        return false;
    }
    fprintf(d->to, "<text class=\"t\" x=\"%.1f\" y=\"%.1f\">%s%s</text>\n", f.left,
            top + 16, panel->title, f.y.logarithmic ? ", logarithmic" : "");
    if (has_validation(d, panel)) {
        fprintf(d->to,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">training: smoothed, "
                "pale as it is; validation: dashed</text>\n",
                f.left + f.width, top + 16);
    }
    put_axes(d, &f);
    put_curves(d, panel, &f);
    return true;
}

// What a run has come to, in words.
static void put_legend(const drawing *d, int r, double y) {
    const plot_run *run = d->runs[r];
    const plot_series *loss = &run->series[PLOT_LOSS];
    const plot_series *validation = &run->series[PLOT_VALIDATION_LOSS];
    fprintf(d->to,
            "<rect class=\"f%d\" x=\"%d\" y=\"%.1f\" width=\"14\" height=\"4\" "
            "rx=\"2\"/><text class=\"n\" x=\"%d\" y=\"%.1f\">",
            r % COLORS, MARGIN + 4, y - 6, MARGIN + 26, y);
    markup_text(run->name, d->to);
    fprintf(d->to, "</text><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
            WIDTH - MARGIN - 8, y);
    if (loss->count > 0) {
        fprintf(d->to, "step %.0f: loss %.4g", loss->last_step, loss->last);
    }
    if (validation->count > 0) {
        fprintf(d->to, "%svalidation %.4g, best %.4g at step %.0f",
                loss->count > 0 ? "; " : "", validation->last, validation->least,
                validation->least_step);
    }
    fprintf(d->to, "</text>\n");
}

static bool is_there(const drawing *d, const plot_panel *panel) {
    plot_axis x, y;
    plot_room room = {3, 3, false};
    return plot_panel_axes(panel, d->runs, d->count, room, &x, &y);
}

void plot_svg(const plot_run *const *runs, int count, FILE *to) {
    drawing d = {runs, count, to};
    int small = 0;
    for (int p = 1; p < PLOT_PANELS; p++) {
        small += is_there(&d, &plot_panels[p]);
    }
    double top = MARGIN + LINE * count + 8, wide = WIDTH - 2 * MARGIN;
    int across = small == 3 ? 3 : small == 1 ? 1 : 2;
    int rows = (small + across - 1) / across;
    double height = top + LARGE + SMALL * rows + MARGIN;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
            "width=\"%d\" height=\"%.0f\" role=\"img\">\n<title>Training curves"
            "</title>\n",
            WIDTH, height, WIDTH, height);
    put_style(to);
    fprintf(to, "<rect class=\"bg\" width=\"%d\" height=\"%.0f\" rx=\"8\"/>\n", WIDTH,
            height);
    for (int r = 0; r < count; r++) {
        put_legend(&d, r, MARGIN + LINE * (r + 1) - 6);
    }
    put_panel(&d, &plot_panels[0], MARGIN, top, wide, LARGE);
    top += LARGE;
    for (int p = 1, at = 0; p < PLOT_PANELS; p++) {
        int row = at / across;
        double left = MARGIN + (at % across) * wide / across;
        if (put_panel(&d, &plot_panels[p], left, top + SMALL * row, wide / across,
                      SMALL)) {
            at++;
        }
    }
    fprintf(to, "</svg>\n");
}
