// Which values an axis shows, and where.
#include "report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const plot_panel plot_panels[PLOT_PANELS] = {
    {"loss", PLOT_LOSS, PLOT_VALIDATION_LOSS, true, true},
    {"accuracy", PLOT_ACCURACY, PLOT_VALIDATION_ACCURACY, true, false},
    {"learning rate", PLOT_RATE, PLOT_SERIES, false, false},
    {"gradient norm", PLOT_NORM, PLOT_SERIES, true, true},
    {"tokens/s", PLOT_SPEED, PLOT_SERIES, true, true},
};

// The spread from which on a panel is logarithmic.
static const double wide = 30;

// 1, 2 or 5 times a power of ten, about `span / ticks`.
static double nice_step(double span, int ticks) {
    double rough = span / ticks, power = pow(10, floor(log10(rough)));
    double share = rough / power;
    return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

static void add_tick(plot_axis *axis, double value) {
    if (axis->ticks < PLOT_TICKS_MAX) {
        axis->tick[axis->ticks++] = value;
    }
}

static void linear_ticks(plot_axis *axis, int ticks) {
    double step = nice_step(axis->to - axis->from, ticks);
    axis->from = floor(axis->from / step + 1e-9) * step;
    axis->to = ceil(axis->to / step - 1e-9) * step;
    for (int i = 0; i < PLOT_TICKS_MAX; i++) {
        double value = axis->from + i * step;
        if (value <= axis->to + step / 2) {
            add_tick(axis, fabs(value) < step / 2 ? 0 : value);
        }
    }
}

// Powers of ten; where there are few of them, 2 and 5 times each as well.
static void logarithmic_ticks(plot_axis *axis, int ticks) {
    static const double between[] = {1, 2, 5};
    double least = axis->from, most = axis->to;
    axis->from = log10(least);
    axis->to = log10(most);
    int every = (int)ceil((axis->to - axis->from) / ticks);
    bool few = axis->to - axis->from < 2.5;
    every = every > 1 ? every : 1;
    for (int p = (int)floor(axis->from); p <= (int)ceil(axis->to); p += every) {
        for (int k = 0; k < (few ? 3 : 1); k++) {
            double value = between[k] * pow(10, p);
            if (value >= least * 0.999 && value <= most * 1.001) {
                add_tick(axis, value);
            }
        }
    }
}

plot_axis plot_axis_make(double least, double most, bool logarithmic, int ticks) {
    plot_axis axis = {.from = least, .to = most, .logarithmic = logarithmic};
    if (!(most - least > 1e-12 * fmax(fabs(least), fabs(most)))) { // one value
        double room = least == 0 ? 1 : fabs(least) / 10;
        axis.from -= room;
        axis.to += room;
        axis.logarithmic = false;
    }
    if (axis.logarithmic) {
        logarithmic_ticks(&axis, ticks);
    } else {
        linear_ticks(&axis, ticks);
    }
    return axis;
}

double plot_axis_place(const plot_axis *axis, double value) {
    double at = axis->logarithmic ? log10(value) : value;
    return fmin(fmax((at - axis->from) / (axis->to - axis->from), 0), 1);
}

void plot_axis_text(double value, char text[PLOT_TICK_TEXT]) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (fabs(value) >= units[i].unit && fabs(value) < 1e15) {
            snprintf(text, PLOT_TICK_TEXT, "%.4g%s", value / units[i].unit,
                     units[i].name);
            return;
        }
    }
    snprintf(text, PLOT_TICK_TEXT, "%.4g", value);
}

typedef struct span {
    double least, most;
    double last; // step
    bool any;
} span;

static void widen(span *of, const plot_series *series, bool smooth) {
    for (int64_t i = 0; i < series->end; i++) {
        const plot_point *p = &series->point[i];
        double least = smooth ? p->smooth : p->least;
        double most = smooth ? p->smooth : p->most;
        if (p->count > 0) {
            of->least = of->any ? fmin(of->least, least) : least;
            of->most = of->any ? fmax(of->most, most) : most;
            of->last = fmax(of->last, series->last_step);
            of->any = true;
        }
    }
}

bool plot_panel_axes(const plot_panel *panel, const plot_run *const *runs, int count,
                     plot_room room, plot_axis *x, plot_axis *y) {
    span of = {.any = false};
    for (int i = 0; i < count; i++) {
        widen(&of, &runs[i]->series[panel->raw], room.smooth);
        if (panel->validation != PLOT_SERIES) {
            widen(&of, &runs[i]->series[panel->validation], false);
        }
    }
    if (!of.any) {
        return false;
    }
    bool logarithmic = panel->logarithmic && of.least > 0 && of.most / of.least > wide;
    *x = plot_axis_make(0, fmax(of.last, 1), false, room.x_ticks);
    x->to = fmax(of.last, 1); // curves end where the picture does
    *y = plot_axis_make(of.least, of.most, logarithmic, room.y_ticks);
    return true;
}
