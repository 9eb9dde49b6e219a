// The maps of several plans. Runs beside each other often have one plan: then it stands
// in the page once.
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

// Buffers of all maps of a page: some 50 bytes each.
enum { BUFFERS = 5000 };

typedef struct maps {
    char *text[PAGE_MAPS];
    int run[PAGE_MAPS]; // whose it is
    int count;
} maps;

// The run that has the same map; -1: none.
static int find(const maps *all, const char *text) {
    for (int i = 0; i < all->count; i++) {
        if (strcmp(all->text[i], text) == 0) {
            return all->run[i];
        }
    }
    return -1;
}

static tr_status make(const tr_plan *plan, int64_t most, char **text, tr_error *err) {
    size_t bytes = 0;
    *text = NULL;
    FILE *to = open_memstream(text, &bytes);
    tr_status status =
        to ? page_map(plan, most, to, err) : tr_fail(err, TR_MEMORY, "no memory");
    if (to && fclose(to) != 0 && status == TR_OK) {
        status = tr_fail(err, TR_MEMORY, "no memory for the page");
    }
    return status;
}

// Takes the text.
static void put(maps *all, int run, char *text, FILE *to) {
    int same = find(all, text);
    if (same >= 0) {
        fprintf(to, "%d", same);
    } else if (all->count < PAGE_MAPS) {
        fputs(text, to);
        all->run[all->count] = run;
        all->text[all->count++] = text;
        return;
    } else {
        fputs("null", to);
    }
    free(text);
}

tr_status page_maps(const page_run *runs, int count, FILE *to, tr_error *err) {
    int64_t most = BUFFERS / (count < PAGE_MAPS ? count : PAGE_MAPS);
    tr_status status = TR_OK;
    maps all = {.count = 0};
    fputc('[', to);
    for (int r = 0; r < count && status == TR_OK; r++) {
        char *text = NULL;
        fputs(r > 0 ? ",\n" : "", to);
        if (!runs[r].plan) {
            fputs("null", to);
            continue;
        }
        status = make(runs[r].plan, most, &text, err);
        if (status == TR_OK) {
            put(&all, r, text, to);
        } else {
            free(text);
        }
    }
    fputc(']', to);
    for (int i = 0; i < all.count; i++) {
        free(all.text[i]);
    }
    return status;
}
