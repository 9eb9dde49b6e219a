// Settings as tables: each key of run.json with its value, and where that is from.
#include "report/markup.h"
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 256,
    VALUE_MAX = 400, // bytes of a value that are shown
    WHOLE_MAX = 8    // runs of which all settings are shown
};

typedef struct setting {
    char *key, *value; // "optimizer.params.lr", "0.003"
} setting;

typedef struct settings {
    setting *items;
    size_t count, room;
    bool failed; // no memory
} settings;

static void add(settings *to, const char *key, const json_t *value) {
    if (to->count == to->room) {
        size_t room = 2 * to->room + 64;
        setting *items = realloc(to->items, room * sizeof *items);
        if (!items) {
            to->failed = true;
            return;
        }
        to->items = items;
        to->room = room;
    }
    setting one = {strdup(key), json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
                                                      JSON_REAL_PRECISION(15))};
    if (one.value && strlen(one.value) > VALUE_MAX) {
        memcpy(one.value + VALUE_MAX - 3, "...", 4);
    }
    to->failed = to->failed || !one.key || !one.value;
    to->items[to->count++] = one;
}

// Objects by their members, under names with dots. Where run.json says where values are
// from stands in no row of its own.
static void flatten(settings *to, const char *path, const json_t *object) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        char key[KEY_MAX];
        snprintf(key, sizeof key, "%s%s%s", path, *path ? "." : "", name);
        if (strcmp(key, "origins") == 0) {
            continue;
        }
        if (json_is_object(value) && json_object_size(value) > 0) {
            flatten(to, key, value);
        } else {
            add(to, key, value);
        }
    }
}

static void clear(settings *of) {
    for (size_t i = 0; i < of->count; i++) {
        free(of->items[i].key);
        free(of->items[i].value);
    }
    free(of->items);
    *of = (settings){0};
}

static const char *value_of(const settings *of, const char *key) {
    for (size_t i = 0; i < of->count; i++) {
        if (of->items[i].key && strcmp(of->items[i].key, key) == 0) {
            return of->items[i].value;
        }
    }
    return NULL;
}

// ---- what differs

// A key that an earlier run has, too, has had its row.
static bool is_first(const settings *all, int run, const char *key) {
    for (int r = 0; r < run; r++) {
        if (value_of(&all[r], key)) {
            return false;
        }
    }
    return true;
}

static bool differs(const settings *all, int count, const char *key) {
    const char *first = value_of(&all[0], key);
    for (int r = 1; r < count; r++) {
        const char *value = value_of(&all[r], key);
        if (!first != !value || (first && strcmp(first, value) != 0)) {
            return true;
        }
    }
    return false;
}

static void put_cell(const char *value, FILE *to) {
    fputs("<td>", to);
    markup_text(value ? value : "-", to);
    fputs("</td>", to);
}

static void put_difference(const settings *all, int count, const char *key, FILE *to) {
    fputs("<tr><th scope=\"row\">", to);
    markup_text(key, to);
    fputs("</th>", to);
    for (int r = 0; r < count; r++) {
        put_cell(value_of(&all[r], key), to);
    }
    fputs("</tr>\n", to);
}

static void put_differences(const page_run *runs, const settings *all, int count,
                            FILE *to) {
    int rows = 0;
    fputs(
        "<div class=\"scroll\"><table id=\"differences\"><caption>settings that differ"
        "</caption>\n<tr><th scope=\"col\">key</th>",
        to);
    for (int r = 0; r < count; r++) {
        fputs("<th scope=\"col\">", to);
        markup_text(runs[r].path, to);
        fputs("</th>", to);
    }
    fputs("</tr>\n", to);
    for (int r = 0; r < count; r++) {
        for (size_t i = 0; i < all[r].count; i++) {
            const char *key = all[r].items[i].key;
            if (is_first(all, r, key) && differs(all, count, key)) {
                put_difference(all, count, key, to);
                rows++;
            }
        }
    }
    fputs("</table></div>\n", to);
    fputs(rows == 0 ? "<p>The settings of all runs are the same.</p>\n" : "", to);
}

// ---- all settings of a run

static void put_settings(const page_run *run, const settings *all, FILE *to) {
    const json_t *origins = json_object_get(run->settings, "origins");
    fputs("<details><summary>settings of ", to);
    markup_text(run->path, to);
    fputs(
        "</summary>\n<div class=\"scroll\"><table class=\"settings\"><tr><th "
        "scope=\"col\">key</th><th scope=\"col\">value</th><th scope=\"col\">from</th>"
        "</tr>\n",
        to);
    for (size_t i = 0; i < all->count; i++) {
        const setting *s = &all->items[i];
        fputs("<tr><th scope=\"row\">", to);
        markup_text(s->key, to);
        fputs("</th>", to);
        put_cell(s->value, to);
        put_cell(json_string_value(json_object_get(origins, s->key)), to);
        fputs("</tr>\n", to);
    }
    fputs("</table></div></details>\n", to);
}

tr_status page_settings(const page_run *runs, int count, FILE *to, tr_error *err) {
    settings all[PLOT_RUNS_MAX] = {{0}};
    bool failed = false, known = true;
    for (int r = 0; r < count; r++) {
        flatten(&all[r], "", runs[r].settings);
        failed = failed || all[r].failed;
        known = known && runs[r].settings;
    }
    if (!failed && count > 1 && known) {
        put_differences(runs, all, count, to);
    }
    for (int r = 0; r < count && !failed; r++) {
        if (runs[r].settings && r < WHOLE_MAX) {
            put_settings(&runs[r], &all[r], to);
        }
    }
    for (int r = 0; r < count; r++) {
        clear(&all[r]);
    }
    return failed ? tr_fail(err, TR_MEMORY, "no memory for the page") : TR_OK;
}
