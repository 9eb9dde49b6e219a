// The chart in a terminal, of braille patterns or of ASCII characters.
#include "report/plot.h"
#include "report/terminal.h"

#include <inttypes.h>
#include <string.h>

enum {
    ROWS = 14,
    LABEL = 8, // columns left of the chart
    COLUMNS_LEAST = 40,
    COLUMNS_MOST = 110,
    CELLS_MOST = ROWS * COLUMNS_MOST,
    NO_RUN = -1,
};

// One cell: which dots are set (braille: bits of 2 x 4; ASCII: bit 0), and whose.
typedef struct cell {
    unsigned char dots;
    bool validation;
    int run;
} cell;

typedef struct chart {
    int columns, across, down; // dots in a cell
    plot_axis x, y;
    cell cell[CELLS_MOST];
} chart;

// Of runs in ASCII, and their colors in a terminal.
static const char marks[] = "*o+x#@%&";
static const int shades[] = {34, 33, 32, 35, 36, 31, 94, 92};
enum { KINDS = sizeof shades / sizeof *shades };

static void set_dot(chart *c, double step, double value, int run, bool validation) {
    static const unsigned char bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    int wide = c->columns * c->across, high = ROWS * c->down;
    int x = (int)(plot_axis_place(&c->x, step) * (wide - 1) + 0.5);
    int y = (int)((1 - plot_axis_place(&c->y, value)) * (high - 1) + 0.5);
    cell *to = &c->cell[y / c->down * c->columns + x / c->across];
    to->dots |= c->down == 4 ? bits[y % 4][x % 2] : 1;
    to->run = run;
    to->validation = validation;
}

// Dots close enough to look like a line.
static void set_line(chart *c, const plot_series *s, int run, bool smooth,
                     bool validation) {
    const plot_point *before = NULL;
    for (int64_t i = 0; i < s->end; i++) {
        const plot_point *p = &s->point[i];
        if (p->count == 0) {
            continue;
        }
        const plot_point *from = before ? before : p;
        double x = plot_point_step(from), to_x = plot_point_step(p);
        double y = smooth ? from->smooth : plot_point_value(from);
        double to_y = smooth ? p->smooth : plot_point_value(p);
        double wide = plot_axis_place(&c->x, to_x) - plot_axis_place(&c->x, x);
        int dots = 1 + (int)(wide * c->columns * c->across);
        for (int k = 1; k <= dots; k++) {
            double share = (double)k / dots;
            set_dot(c, x + share * (to_x - x), y + share * (to_y - y), run, validation);
        }
        before = p;
    }
}

// As dots only where each character hides what lies below it.
static void set_validation(chart *c, const plot_series *s, int run) {
    if (c->down > 1) {
        set_line(c, s, run, false, true);
    }
    for (int64_t i = 0; i < s->end; i++) {
        if (s->point[i].count > 0) {
            set_dot(c, plot_point_step(&s->point[i]), plot_point_value(&s->point[i]),
                    run, true);
        }
    }
}

static void put_cell(const cell *of, plot_look look, FILE *to) {
    int kind = of->run % KINDS;
    if (of->run == NO_RUN) {
        fputc(' ', to);
        return;
    }
    if (look.color) {
        fprintf(to, "\x1b[%s%dm", of->validation ? "1;" : "", shades[kind]);
    }
    if (look.braille) { // U+2800 + dots
        fprintf(to, "\xe2%c%c", 0xa0 + (of->dots >> 6), 0x80 + (of->dots & 63));
    } else {
        fputc(of->validation ? 'v' : marks[kind], to);
    }
    if (look.color) {
        fputs("\x1b[0m", to);
    }
}

static const char *row_label(const chart *c, int row, char text[PLOT_TICK_TEXT]) {
    for (int i = 0; i < c->y.ticks; i++) {
        double place = 1 - plot_axis_place(&c->y, c->y.tick[i]);
        if ((int)(place * (ROWS - 1) + 0.5) == row) {
            plot_axis_text(c->y.tick[i], text);
            return text;
        }
    }
    return "";
}

static void put_chart(const chart *c, plot_look look, FILE *to) {
    const char *edge = look.braille ? "\xe2\x94\x82" : "|"; // U+2502
    for (int row = 0; row < ROWS; row++) {
        char text[PLOT_TICK_TEXT];
        int end = c->columns; // no blanks at the line's end
        while (end > 0 && c->cell[row * c->columns + end - 1].run == NO_RUN) {
            end--;
        }
        fprintf(to, "%*s %s", LABEL - 2, row_label(c, row, text), edge);
        for (int x = 0; x < end; x++) {
            put_cell(&c->cell[row * c->columns + x], look, to);
        }
        fputc('\n', to);
    }
    char most[PLOT_TICK_TEXT];
    plot_axis_text(c->x.to, most);
    fprintf(to, "%*s 0%*s%s\n", LABEL - 2, "step", c->columns - 1 - (int)strlen(most),
            "", most);
}

static void put_number(const plot_series *s, double value, FILE *to) {
    char text[PLOT_TICK_TEXT];
    plot_axis_text(value, text);
    fprintf(to, " %9s", s->count > 0 ? text : "-");
}

// A line for each run: what it has come to.
static void put_table(const plot_run *const *runs, int count, plot_look look,
                      FILE *to) {
    fprintf(to, "\n%9s %9s %9s %9s %9s %9s %9s    run\n", "step", "loss", "validated",
            "best", "lr", "norm", "tokens/s");
    for (int r = 0; r < count; r++) {
        const plot_series *s = runs[r]->series;
        double loss_step = s[PLOT_LOSS].last_step;
        double validated = s[PLOT_VALIDATION_LOSS].last_step;
        cell mark = {.dots = 255, .run = r};
        fprintf(to, "%9.0f", loss_step > validated ? loss_step : validated);
        put_number(&s[PLOT_LOSS], s[PLOT_LOSS].last, to);
        put_number(&s[PLOT_VALIDATION_LOSS], s[PLOT_VALIDATION_LOSS].last, to);
        put_number(&s[PLOT_VALIDATION_LOSS], s[PLOT_VALIDATION_LOSS].least, to);
        put_number(&s[PLOT_RATE], s[PLOT_RATE].last, to);
        put_number(&s[PLOT_NORM], s[PLOT_NORM].last, to);
        put_number(&s[PLOT_SPEED], s[PLOT_SPEED].last, to);
        fputs(" ", to);
        put_cell(&mark, look, to);
        fputc(' ', to);
        report_print_name(to, runs[r]->name);
        fputc('\n', to);
    }
}

static bool any_validation(const plot_run *const *runs, int count) {
    bool any = false;
    for (int r = 0; r < count; r++) {
        any = any || runs[r]->series[PLOT_VALIDATION_LOSS].count > 0;
    }
    return any;
}

void plot_text(const plot_run *const *runs, int count, plot_look look, FILE *to) {
    static chart c;
    int room = look.columns - LABEL;
    memset(&c, 0, sizeof c);
    c.columns = room < COLUMNS_LEAST  ? COLUMNS_LEAST
                : room > COLUMNS_MOST ? COLUMNS_MOST
                                      : room;
    c.across = look.braille ? 2 : 1;
    c.down = look.braille ? 4 : 1;
    for (int i = 0; i < CELLS_MOST; i++) {
        c.cell[i].run = NO_RUN;
    }
    plot_room axes = {8, 4, true};
    if (plot_panel_axes(&plot_panels[0], runs, count, axes, &c.x, &c.y)) {
        for (int r = 0; r < count; r++) {
            set_line(&c, &runs[r]->series[PLOT_LOSS], r, true, false);
        }
        for (int r = 0; r < count; r++) {
            set_validation(&c, &runs[r]->series[PLOT_VALIDATION_LOSS], r);
        }
        fprintf(to, "loss%s: training, smoothed%s\n",
                c.y.logarithmic ? ", logarithmic" : "",
                !any_validation(runs, count) ? ""
                : look.braille && look.color ? "; validation bold"
                : look.braille               ? "; and validation"
                                             : "; validation v");
        put_chart(&c, look, to);
    }
    put_table(runs, count, look, to);
}
