// A line of metrics.jsonl as the program writes it, read without a tree: ten times as
// fast as a whole reader of JSON, which reads what this one leaves to it.
#ifndef TR_REPORT_PLOT_LINE_H
#define TR_REPORT_PLOT_LINE_H

#include "report/plot.h"

typedef struct plot_line {
    int64_t step; // -1: it has none
    bool has[PLOT_SERIES];
    double value[PLOT_SERIES]; // finite
    bool event[PLOT_EVENTS];
} plot_line;

// Where keys were found in the line before: mostly they are there again.
enum { PLOT_KEYS_MAX = 64 };
typedef struct plot_hints {
    int key[PLOT_KEYS_MAX];
} plot_hints;

// False: the line is no JSON, or not as plain as the program's: it says nothing else.
bool plot_line_scan(const char *text, size_t length, plot_hints *hints,
                    plot_line *line);

#endif
