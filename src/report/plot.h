// tranche plot: what is read of metrics files, and how it is drawn.
#ifndef TR_REPORT_PLOT_H
#define TR_REPORT_PLOT_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// X(name, its key in metrics.jsonl; "a.b": b in the object a)
#define PLOT_SERIES_LIST(X)                                                            \
    X(LOSS, "loss")                                                                    \
    X(VALIDATION_LOSS, "validation_loss")                                              \
    X(ACCURACY, "accuracy")                                                            \
    X(VALIDATION_ACCURACY, "validation_accuracy")                                      \
    X(RATE, "lr")                                                                      \
    X(NORM, "grad_norm")                                                               \
    X(SPEED, "tokens_per_second")                                                      \
    X(NOISE, "noise_scale")                                                            \
    X(BATCH, "train_batch_size")                                                       \
    X(LOSS_SCALE, "loss_scale")                                                        \
    X(SECONDS, "seconds")                                                              \
    X(DATA_WAIT, "wait_seconds")                                                       \
    X(RANK_WAIT, "ranks.wait_seconds")                                                 \
    X(DEVICE_PEAK, "peak_bytes.device")                                                \
    X(HOST_PEAK, "peak_bytes.host")                                                    \
    X(PROCESS_PEAK, "peak_bytes.process")                                              \
    X(DEVICE_PLANNED, "planned_peak_bytes.device")                                     \
    X(HOST_PLANNED, "planned_peak_bytes.host")                                         \
    X(SAMPLES, "samples")                                                              \
    X(TOKENS, "tokens")                                                                \
    X(TIME, "time")                                                                    \
    X(RANKS, "ranks.count")

typedef enum plot_name {
#define PLOT_ENUM(name, key) PLOT_##name,
    PLOT_SERIES_LIST(PLOT_ENUM)
#undef PLOT_ENUM
        PLOT_SERIES
} plot_name;

enum { PLOT_POINTS = 1024, PLOT_NAME_MAX = 80, PLOT_RUNS_MAX = 64 };

// The values of neighbouring steps together.
typedef struct plot_point {
    int64_t count;
    double steps, values; // sums
    double least, most, smooth;
} plot_point;

// A curve in bounded memory: point i has the steps [i * width, (i + 1) * width), and
// the width doubles when a step lies beyond the last point.
typedef struct plot_series {
    int64_t width, end; // `end`: points up to the last that has a value
    double first_step, last_step, last, least, most;
    double least_step, most_step; // where these were first met
    int64_t count;                // values in all
    plot_point point[PLOT_POINTS];
} plot_series;

// What happened at a step, beside its values.
typedef enum plot_event {
    PLOT_SKIPPED,
    PLOT_SPIKE,
    PLOT_ROLLBACK,
    PLOT_EVENTS
} plot_event;
typedef struct plot_mark {
    int64_t step;
    plot_event event;
} plot_mark;
enum { PLOT_MARKS_MAX = 512, PLOT_DAMAGED_MAX = 8, PLOT_DAMAGED_TEXT = 256 };

typedef struct plot_run {
    char name[PLOT_NAME_MAX]; // fit to be shown
    int64_t lines;
    plot_series series[PLOT_SERIES];
    int64_t events[PLOT_EVENTS];
    plot_mark marks[PLOT_MARKS_MAX]; // the first of these
    int mark_count;
    // Lines that are not what such a file has, and were passed over (plot_read); the
    // first of these in words, with file and line.
    int64_t damaged;
    char damage[PLOT_DAMAGED_MAX][PLOT_DAMAGED_TEXT];
} plot_run;

// ---- plot_series.c
void plot_series_begin(plot_series *series);
// step >= 0, and a finite value.
void plot_series_add(plot_series *series, int64_t step, double value);
// Fills in `smooth`: the mean of two exponential means over a hundredth of the points,
// one from each end, so that the curve does not lag behind.
void plot_series_smooth(plot_series *series);
// Adds the values of a point to another one.
void plot_series_join(plot_point *to, const plot_point *from);
double plot_point_step(const plot_point *point); // of a point with values
double plot_point_value(const plot_point *point);

// ---- plot_read.c
// Reads an out folder's metrics.jsonl, or a file of this form. TR_IO: there is none;
// TR_DATA: no step with a loss, or, unless tolerant, a line that is not what such a
// file has, with its number.
tr_status plot_read(const char *path, bool tolerant, plot_run *run, tr_error *err);

// How far a file has been read that a run still writes.
enum { PLOT_TAIL = 64 };
typedef struct plot_place {
    int64_t bytes;        // of whole lines
    char tail[PLOT_TAIL]; // the last of these
    int tail_bytes;
} plot_place;
// Reads what has come since, tolerantly; *place all 0: from the beginning. A last line
// that is not whole waits. Where the file is not the one that was read (a resumed run
// has cut it back), it is read anew. *changed: there was something. Errors as above.
tr_status plot_read_on(const char *path, plot_run *run, plot_place *place,
                       bool *changed, tr_error *err);
// The key of a series in metrics.jsonl.
const char *plot_key(plot_name name);

// ---- plot_axis.c
enum { PLOT_TICKS_MAX = 12, PLOT_TICK_TEXT = 16 };
typedef struct plot_axis {
    double from, to; // as it is drawn: the logarithm where `logarithmic`
    bool logarithmic;
    int ticks;
    double tick[PLOT_TICKS_MAX]; // values
} plot_axis;
// An axis over [least, most] with about so many ticks.
plot_axis plot_axis_make(double least, double most, bool logarithmic, int ticks);
// Where a value lies on the axis: 0 at its beginning, 1 at its end.
double plot_axis_place(const plot_axis *axis, double value);
// "1.5k"
void plot_axis_text(double value, char text[PLOT_TICK_TEXT]);

typedef struct plot_panel {
    const char *title;
    plot_name raw;             // drawn as it is and smoothed
    plot_name validation;      // PLOT_SERIES: none
    bool smooths, logarithmic; // where its values are spread widely
} plot_panel;
enum { PLOT_PANELS = 5 };
extern const plot_panel plot_panels[PLOT_PANELS]; // the first is the large one
// About how many ticks the axes of a panel have, and whether they leave room for what
// is smoothed alone.
typedef struct plot_room {
    int x_ticks, y_ticks;
    bool smooth;
} plot_room;
// The axes of a panel over all runs; false: no run has a value for it.
bool plot_panel_axes(const plot_panel *panel, const plot_run *const *runs, int count,
                     plot_room room, plot_axis *x, plot_axis *y);

// ---- plot_svg.c
// A picture that follows the reader's light or dark scheme.
void plot_svg(const plot_run *const *runs, int count, FILE *to);

// ---- plot_text.c
typedef struct plot_look {
    int columns;  // of the terminal
    bool braille; // else ASCII
    bool color;
} plot_look;
// The first panel as a chart of characters, and a table of what the runs have come to.
void plot_text(const plot_run *const *runs, int count, plot_look look, FILE *to);

#endif
