// The ledger of a plan, beside what the run has measured.
#include "report/markup.h"
#include "report/page.h"

#include <inttypes.h>
#include <math.h>

static void put_bytes(double bytes, FILE *to) {
    char text[MARKUP_SIZE_TEXT];
    fprintf(to, "<td>%.0f</td><td>%s</td>", bytes, markup_size((int64_t)bytes, text));
}

static void put_row(const char *name, const char *class, double bytes, FILE *to) {
    fprintf(to, "<tr%s><th scope=\"row\">", class);
    markup_text(name, to);
    fputs("</th>", to);
    put_bytes(bytes, to);
    fputs("</tr>\n", to);
}

static void put_measured(const plot_run *metrics, plot_name which, const char *name,
                         FILE *to) {
    const plot_series *s = metrics ? &metrics->series[which] : NULL;
    if (s && s->count > 0) {
        put_row(name, " class=\"measured\"", s->most, to);
    }
}

static void put_space(const page_run *run, tr_space space, FILE *to) {
    static const plot_name peaks[TR_SPACES] = {PLOT_DEVICE_PEAK, PLOT_HOST_PEAK,
                                               PLOT_SERIES};
    const tr_ledger *ledger = tr_plan_ledger(run->plan);
    if (ledger->total[space] == 0) {
        return;
    }
    fprintf(to,
            "<table class=\"ledger\"><caption>%s, bytes at the fullest moment of a step"
            "</caption>\n",
            tr_space_name(space));
    for (int c = 0; c < TR_LEDGER_COUNT; c++) {
        if (ledger->bytes[space][c] > 0) {
            put_row(tr_ledger_name((tr_ledger_category)c), "",
                    (double)ledger->bytes[space][c], to);
        }
    }
    put_row("planned peak", " class=\"total\"", (double)ledger->total[space], to);
    if (peaks[space] != PLOT_SERIES) {
        put_measured(run->metrics, peaks[space], "measured peak", to);
    }
    if (space == TR_SPACE_DEVICE) {
        put_measured(run->metrics, PLOT_PROCESS_PEAK, "the whole process, measured",
                     to);
    }
    fputs("</table>\n", to);
}

// A plan that is made anew may be another: of another machine, or another version.
static void put_difference(const page_run *run, FILE *to) {
    const plot_series *planned =
        run->metrics ? &run->metrics->series[PLOT_DEVICE_PLANNED] : NULL;
    double here = (double)tr_plan_ledger(run->plan)->total[TR_SPACE_DEVICE];
    char was[MARKUP_SIZE_TEXT], is[MARKUP_SIZE_TEXT];
    if (planned && planned->count > 0 && planned->most != here) {
        fprintf(to,
                "<p class=\"warning\">The run planned %s on the device. The plan that "
                "this program makes of its settings, on this machine, needs %s: it is "
                "another one.</p>\n",
                markup_size((int64_t)planned->most, was),
                markup_size((int64_t)here, is));
    }
}

void page_ledger(const page_run *run, FILE *to) {
    put_difference(run, to);
    fputs("<div class=\"tables\">\n", to);
    for (int s = 0; s < TR_SPACES; s++) {
        put_space(run, (tr_space)s, to);
    }
    fputs("</div>\n", to);
}
