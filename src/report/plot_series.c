#include "report/plot.h"

#include <math.h>
#include <string.h>

void plot_series_begin(plot_series *series) {
    memset(series, 0, sizeof *series);
    series->width = 1;
}

void plot_series_join(plot_point *to, const plot_point *from) {
    if (from->count == 0) {
        return;
    }
    to->least = to->count ? fmin(to->least, from->least) : from->least;
    to->most = to->count ? fmax(to->most, from->most) : from->most;
    to->count += from->count;
    to->steps += from->steps;
    to->values += from->values;
}

// Two points become one.
static void halve(plot_series *series) {
    for (int i = 0; i < PLOT_POINTS; i++) {
        plot_point point = series->point[i];
        series->point[i] = (plot_point){0};
        plot_series_join(&series->point[i / 2], &point);
    }
    series->width *= 2;
    series->end = (series->end + 1) / 2;
}

void plot_series_add(plot_series *series, int64_t step, double value) {
    while (step / series->width >= PLOT_POINTS) {
        halve(series);
    }
    int64_t at = step / series->width;
    plot_point point = {1, (double)step, value, value, value, 0};
    bool first = series->count++ == 0;
    if (first || value < series->least) {
        series->least = value;
        series->least_step = (double)step;
    }
    if (first || value > series->most) {
        series->most = value;
        series->most_step = (double)step;
    }
    series->first_step = first ? (double)step : fmin(series->first_step, (double)step);
    if (first || (double)step >= series->last_step) {
        series->last_step = (double)step;
        series->last = value;
    }
    plot_series_join(&series->point[at], &point);
    series->end = at >= series->end ? at + 1 : series->end;
}

double plot_point_step(const plot_point *point) {
    return point->steps / (double)point->count;
}

double plot_point_value(const plot_point *point) {
    return point->values / (double)point->count;
}

// The exponential mean of what lies before each point (or behind it, from the last one
// on), half of which is added to its `smooth`.
static void add_means(plot_series *series, double keep, bool backwards) {
    double mean = 0, weight = 0;
    for (int64_t k = 0; k < series->end; k++) {
        plot_point *point = &series->point[backwards ? series->end - 1 - k : k];
        if (point->count > 0) { // the first ones are not drawn towards zero
            mean = keep * mean + (1 - keep) * plot_point_value(point);
            weight = keep * weight + (1 - keep);
            point->smooth += mean / weight / 2;
        }
    }
}

void plot_series_smooth(plot_series *series) {
    double filled = 0;
    for (int64_t i = 0; i < series->end; i++) {
        series->point[i].smooth = 0;
        filled += series->point[i].count > 0;
    }
    double keep = 1 - 1 / fmax(1, filled / 100);
    add_means(series, keep, false);
    add_means(series, keep, true);
}
