// tranche report: one page of HTML with all that it shows. Nothing is loaded from
// elsewhere, and what others wrote (names, paths, messages) stands in it as text.
#ifndef TR_REPORT_PAGE_H
#define TR_REPORT_PAGE_H

#include "report/plot.h"
#include "report/timeline.h"

#include <tranche/checkpoint.h>
#include <tranche/plan.h>

#include <jansson.h>

// One of the runs that a page shows. What is NULL is not known.
typedef struct page_run {
    const char *path;        // as it was given
    const plot_run *metrics; // what it has come to
    const json_t *settings;  // its run.json: every value, and where it is from
    const json_t *history;   // what is in its history.jsonl, as an array
    const tr_checkpoint_entry *checkpoints; // [checkpoint_count] in its folder
    size_t checkpoint_count;
    const tr_plan *plan; // of its step
    const char *no_plan; // why there is none, in words
    // One step as it was simulated, and as it was traced.
    const timeline *planned, *traced;
} page_run;

// A page. reload: seconds after which it loads itself again; 0: it does not.
enum { PAGE_RELOAD_SECONDS = 3 };
typedef struct page_all {
    const page_run *runs;
    int count;
    int reload;
} page_all;

// Writes the page: curves of all runs that have such, the memory of each plan, and the
// settings. At least one run, at most PLOT_RUNS_MAX. TR_MEMORY. What cannot be written
// shows in ferror(to).
tr_status page_write(const page_all *page, FILE *to, tr_error *err);
// Does this program have charts to put into pages (cmake/page.cmake)? Else they have
// the picture of plot_svg.
bool page_has_charts(void);

// ---- page_curves.c
// A JSON array: an object for each run, in their order.
void page_curves(const page_run *runs, int count, FILE *to);

// ---- page_passes.c
// Tables of which run's loss is the lowest, and where it passes the others; nothing
// where fewer than two runs have a loss.
void page_passes(const page_run *runs, int count, FILE *to);

// ---- page_map.c
// The arenas of a plan over its steps, as a JSON object with at most so many buffers (6
// or more), and fewer points and steps.
tr_status page_map(const tr_plan *plan, int64_t buffers, FILE *to, tr_error *err);
// ---- page_maps.c
// A JSON array of the maps of runs: an object; the number of a run before that has the
// same; null: there is no plan, or there are PAGE_MAPS others already. TR_MEMORY.
enum { PAGE_MAPS = 8 };
tr_status page_maps(const page_run *runs, int count, FILE *to, tr_error *err);

// ---- page_memory.c
// The ledger of a plan as a table, with the peak that was measured.
void page_ledger(const page_run *run, FILE *to);

// ---- page_time.c
// What streams do in a step, and the critical path, as tables.
void page_time(const page_run *run, FILE *to);
// A JSON array: an object for each run, with its longest spans. TR_MEMORY.
tr_status page_times(const page_run *runs, int count, FILE *to, tr_error *err);

// ---- page_history.c
// Which processes trained it, and how they ended; nothing where nothing says so.
void page_history(const page_run *run, FILE *to);

// ---- page_settings.c
// What differs between the settings of runs, and all settings of each, as tables.
tr_status page_settings(const page_run *runs, int count, FILE *to, tr_error *err);

#endif
