#include "report/page.h"
#include "report/markup.h"
#include "report/page_files.h"

#include <tranche/version.h>

#include <inttypes.h>

bool page_has_charts(void) {
    return page_charts.bytes > 0;
}

static void put_element(const char *name, const page_file *file, FILE *to) {
    if (file->bytes > 0) {
        fprintf(to, "<%s>", name);
        fwrite(file->text, 1, file->bytes, to);
        fprintf(to, "</%s>\n", name);
    }
}

static void put_hash(const page_file *file, FILE *to) {
    if (file->bytes > 0) {
        fprintf(to, " '%s'", file->hash);
    }
}

// The page loads nothing, sends nothing, and runs the scripts of the program alone.
// SVG's pictures bring a style of their own, whose text is the program's, too.
static void put_policy(FILE *to) {
    fputs("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "script-src",
          to);
    put_hash(&page_charts, to);
    put_hash(&page_script, to);
    fputs("; style-src", to);
    if (page_has_charts()) {
        put_hash(&page_charts_style, to);
        put_hash(&page_style, to);
    } else {
        fputs(" 'unsafe-inline'", to);
    }
    fputs("; base-uri 'none'; form-action 'none'\">\n", to);
}

static void put_head(const page_all *page, FILE *to) {
    const page_run *runs = page->runs;
    int count = page->count;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
          to);
    put_policy(to);
    fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
          to);
    markup_text(runs[0].path, to);
    if (count > 1) {
        fprintf(to, " and %d more", count - 1);
    }
    fputs(" - Tranche</title>\n", to);
    put_element("style", &page_charts_style, to);
    put_element("style", &page_style, to);
    fputs("</head>\n<body", to);
    if (page->reload > 0) {
        fprintf(to, " data-reload=\"%d\"", page->reload);
    }
    fputs(">\n<header><h1>Training report</h1>\n<ul id=\"runs\">\n", to);
    for (int r = 0; r < count; r++) {
        fprintf(to, "<li><span class=\"swatch\" data-run=\"%d\"></span><code>", r);
        markup_text(runs[r].path, to);
        fputs("</code>", to);
        const plot_run *m = runs[r].metrics;
        if (m && m->series[PLOT_LOSS].count > 0) {
            fprintf(to, " step %.0f, loss %.4g", m->series[PLOT_LOSS].last_step,
                    m->series[PLOT_LOSS].last);
        }
        fputs("</li>\n", to);
    }
    fputs("</ul></header>\n<main>\n", to);
}

// ---- curves

static void put_damage(const page_run *runs, int count, FILE *to) {
    for (int r = 0; r < count; r++) {
        const plot_run *m = runs[r].metrics;
        for (int64_t i = 0; m && i < m->damaged && i < PLOT_DAMAGED_MAX; i++) {
            fputs("<p class=\"warning\">passed over: ", to);
            markup_text(m->damage[i], to);
            fputs("</p>\n", to);
        }
        if (m && m->damaged > PLOT_DAMAGED_MAX) {
            fprintf(to, "<p class=\"warning\">and %" PRId64 " more lines</p>\n",
                    m->damaged - PLOT_DAMAGED_MAX);
        }
    }
}

static void put_picture(const page_run *runs, int count, FILE *to) {
    const plot_run *metrics[PLOT_RUNS_MAX];
    int known = 0;
    for (int r = 0; r < count; r++) {
        if (runs[r].metrics) {
            metrics[known++] = runs[r].metrics;
        }
    }
    fputs("<p>This program was built without dygraphs, so the curves are a picture.</p>"
          "\n<div class=\"scroll\">",
          to);
    plot_svg(metrics, known, to);
    fputs("</div>\n", to);
}

static void put_curves(const page_run *runs, int count, FILE *to) {
    bool any = false;
    for (int r = 0; r < count; r++) {
        any = any || runs[r].metrics;
    }
    if (!any) {
        return;
    }
    fputs("<section id=\"curves\"><h2>Curves</h2>\n", to);
    put_damage(runs, count, to);
    if (page_has_charts()) {
        fputs("<div id=\"controls\"></div>\n<div id=\"charts\"></div>\n", to);
    } else {
        put_picture(runs, count, to);
    }
    page_passes(runs, count, to);
    fputs("</section>\n", to);
}

// ---- memory

static void put_memory(const page_run *run, int number, FILE *to) {
    fputs("<section class=\"memory\"><h2>Memory of a step: <code>", to);
    markup_text(run->path, to);
    fputs("</code></h2>\n", to);
    if (run->plan) {
        page_ledger(run, to);
        fprintf(to, "<div class=\"map\" data-run=\"%d\"></div>\n", number);
    } else {
        fputs("<p class=\"warning\">there is no plan: ", to);
        markup_text(run->no_plan ? run->no_plan : "nothing says of what", to);
        fputs("</p>\n", to);
    }
    fputs("</section>\n", to);
}

// ---- time

static void put_time(const page_run *run, int number, FILE *to) {
    if (run->planned || run->traced) {
        fputs("<section class=\"time\"><h2>Time of a step: <code>", to);
        markup_text(run->path, to);
        fputs("</code></h2>\n", to);
        page_time(run, to);
        fprintf(to, "<div class=\"lanes\" data-run=\"%d\"></div>\n</section>\n",
                number);
    }
}

// ---- what the scripts read

static tr_status put_data(const page_run *runs, int count, FILE *to, tr_error *err) {
    fputs("<script type=\"application/json\" id=\"data\">{\"runs\":", to);
    page_curves(runs, count, to);
    fputs(",\n\"plans\":", to);
    tr_status status = page_maps(runs, count, to, err);
    fputs(",\n\"times\":", to);
    if (status == TR_OK) {
        status = page_times(runs, count, to, err);
    }
    fputs("}</script>\n", to);
    return status;
}

static void put_foot(FILE *to) {
    fprintf(to, "<footer><p>Written by Tranche %s.</p>\n", tr_version());
    if (page_has_charts()) {
        fputs("<details><summary>Charts: dygraphs, and its licence</summary><pre>", to);
        markup_text(page_charts_licence.text, to);
        fputs("</pre></details>\n", to);
    }
    fputs("</footer>\n", to);
}

tr_status page_write(const page_all *page, FILE *to, tr_error *err) {
    const page_run *runs = page->runs;
    int count = page->count;
    put_head(page, to);
    put_curves(runs, count, to);
    for (int r = 0; r < count; r++) {
        put_memory(&runs[r], r, to);
        put_time(&runs[r], r, to);
    }
    for (int r = 0; r < count; r++) {
        page_history(&runs[r], to);
    }
    fputs("<section id=\"settings\"><h2>Settings</h2>\n", to);
    tr_status status = page_settings(runs, count, to, err);
    fputs("</section>\n</main>\n", to);
    put_foot(to);
    if (status == TR_OK) {
        status = put_data(runs, count, to, err);
    }
    put_element("script", &page_charts, to);
    put_element("script", &page_script, to);
    fputs("</body>\n</html>\n", to);
    return status;
}
