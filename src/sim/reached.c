#include "sim/reached.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const way_keys[TR_WAYS] = {
#define TR_WAY_KEY(name, key) key,
    TR_WAY_LIST(TR_WAY_KEY)
#undef TR_WAY_KEY
};

const char *tr__way_key(tr_way way) {
    return way_keys[way];
}

// ---- keys

#define VALUE(field)                                                                   \
    .types = TR_KEY_NUMBER, .offset = offsetof(tr_reached, field),                     \
    .size = sizeof(((tr_reached *)0)->field)
#define SHARE(field) VALUE(field), .min = 0, .max = 1
#define COUNT(field) VALUE(field), .min = 0, .max = 1 << 20
#define WATTS(field) VALUE(field), .min = 0, .max = 1e6

static const tr_key fixed_keys[] = {
    {.path = "reached.products.share",
     SHARE(products.share),
     .doc = "of compute.flops and compute.half, by large products"},
    {.path = "reached.products.fp8", SHARE(products.fp8), .doc = "of compute.fp8"},
    {.path = "reached.products.processors",
     COUNT(products.processors),
     .doc = "that tiles are spread over"},
    {.path = "reached.products.rows", COUNT(products.rows), .doc = "of a tile"},
    {.path = "reached.products.columns", COUNT(products.columns), .doc = "of a tile"},
    {.path = "reached.products.edge",
     COUNT(products.edge),
     .doc = "what a tile's edges take, in columns"},
    {.path = "reached.products.depth",
     COUNT(products.depth),
     .doc = "what a tile takes besides, in terms"},
    {.path = "reached.attention.forward",
     SHARE(attention.forward),
     .doc = "of compute.half or compute.flops"},
    {.path = "reached.attention.backward",
     SHARE(attention.backward),
     .doc = "of compute.half or compute.flops"},
    {.path = "reached.attention.context",
     COUNT(attention.context),
     .doc = "keys with which half is reached"},
    {.path = "reached.attention.depth",
     COUNT(attention.depth),
     .doc = "columns of a head with which half is reached"},
    {.path = "reached.memory.share", SHARE(memory), .doc = "of compute.bytes"},
    {.path = "reached.power.sheet",
     WATTS(power.sheet),
     .doc = "the data sheet's watts"},
    {.path = "reached.power.idle", WATTS(power.idle), .doc = "watts without work"},
    {.path = "reached.power.exponent",
     SHARE(power.exponent),
     .doc = "rates go with this power of the watts"},
    {.path = "reached.issue",
     VALUE(issue),
     .max = 1,
     .doc = "seconds that the host takes to issue a kernel"},
    {.path = "reached.spread",
     SHARE(spread),
     .doc = "standard deviation of a kernel's time, as a part of it"},
};

typedef char path_text[TR_REACHED_PATH];

static void add_way(tr_key *key, char *path, tr_way way, const char *name, double max) {
    snprintf(path, TR_REACHED_PATH, "reached.%s.%s", way_keys[way], name);
    key->path = path;
    key->max = max;
}

size_t tr__reached_keys(tr_key keys[TR_REACHED_KEYS_MAX],
                        char paths[TR_REACHED_KEYS_MAX][TR_REACHED_PATH], size_t base) {
    size_t count = sizeof fixed_keys / sizeof *fixed_keys;
    memcpy(keys, fixed_keys, sizeof fixed_keys);
    for (int i = 0; i < TR_WAYS; i++) {
        size_t at = (size_t)i * sizeof((tr_reached *)0)->way[0];
        keys[count] = (tr_key){VALUE(way[0].share), .doc = "of its rate"};
        keys[count].offset += at;
        add_way(&keys[count], paths[count], (tr_way)i, "share", 1);
        count++;
        keys[count] = (tr_key){VALUE(way[0].half),
                               .doc = "bytes of a message that reaches half of it"};
        keys[count].offset += at;
        add_way(&keys[count], paths[count], (tr_way)i, "half", 1e15);
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        keys[i].offset += base;
    }
    return count;
}

// ---- writing

// The objects that stand open: "reached", "reached.products".
typedef struct open_path {
    char text[TR_REACHED_PATH];
    tr_json_writer *to;
} open_path;

static void close_last(open_path *open) {
    char *dot = strrchr(open->text, '.');
    tr__json_close(open->to, '}');
    *(dot ? dot : open->text) = '\0';
}

static bool leads_to(const char *group, const char *path) {
    size_t length = strlen(group);
    return length == 0 || (strncmp(path, group, length) == 0 && path[length] == '.');
}

// Closes and opens objects until the one that `path` is in is the last; returns the
// path's last name.
static const char *enter(open_path *open, const char *path) {
    while (!leads_to(open->text, path)) {
        close_last(open);
    }
    size_t length = strlen(open->text);
    const char *name = path + length + (length > 0), *dot;
    while ((dot = strchr(name, '.')) != NULL) {
        char group[TR_REACHED_PATH];
        snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
        tr__json_line(open->to, name == path ? 4 : 8);
        tr__json_put_open(open->to, group, '{');
        name = dot + 1;
        snprintf(open->text, sizeof open->text, "%.*s", (int)(dot - path), path);
    }
    return name;
}

void tr__reached_print(const tr_reached *reached, tr_json_writer *to) {
    tr_key keys[TR_REACHED_KEYS_MAX];
    path_text paths[TR_REACHED_KEYS_MAX];
    open_path open = {"", to};
    size_t count = tr__reached_keys(keys, paths, 0);
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)reached + keys[i].offset, sizeof value);
        if (value != 0) {
            tr__json_put_digits(to, enter(&open, keys[i].path), value, 4);
        }
    }
    while (open.text[0] != '\0') {
        close_last(&open);
    }
}

// ---- products

enum { HALVINGS = 3, SPLITS = 5 };

// Time of all terms of a tile and an operation, in those of the largest tile.
static double edges(const tr_reached *r, double rows, double columns) {
    double own = 1 + r->products.edge * (1 / rows + 1 / columns);
    return own /
           (1 + r->products.edge * (1 / r->products.rows + 1 / r->products.columns));
}

// Operations that the processors could do while the product goes on in tiles of this
// size, each cut into `splits` along its depth.
static double taken(const tr_reached *r, double processors, const tr_cost *p,
                    const double tile[2], int splits) {
    double tiles = ceil(p->rows / tile[0]) * ceil(p->columns / tile[1]);
    double waves = ceil(tiles * splits / processors);
    double terms = p->depth / splits + r->products.depth;
    return waves * processors * tile[0] * tile[1] * terms * edges(r, tile[0], tile[1]);
}

static double least_taken(const tr_reached *r, double processors, const tr_cost *p,
                          double rows, double columns) {
    double least = INFINITY;
    for (int i = 0; i < HALVINGS * HALVINGS; i++) {
        const double tile[2] = {rows / (1 << i % HALVINGS),
                                columns / (1 << i / HALVINGS)};
        for (int s = 0; s < SPLITS; s++) {
            least = fmin(least, taken(r, processors, p, tile, 1 << s));
        }
    }
    return least;
}

double tr__reached_shape(const tr_reached *r, double processors, const tr_cost *p) {
    bool said =
        r->products.processors > 0 && r->products.rows > 0 && r->products.columns > 0;
    if (!said || p->rows <= 0 || processors < 1) {
        return 1;
    }
    double across =
        least_taken(r, processors, p, r->products.rows, r->products.columns);
    double along = least_taken(r, processors, p, r->products.columns, r->products.rows);
    return p->rows * p->columns * p->depth / fmin(across, along);
}

double tr__reached_attention(const tr_reached *r, double context, double depth) {
    return context / (context + r->attention.context) *
           (depth / (depth + r->attention.depth));
}

double tr__reached_power(const tr_reached *r, double watts) {
    double sheet = r->power.sheet - r->power.idle, own = watts - r->power.idle;
    if (watts <= 0 || sheet <= 0 || own >= sheet) {
        return 1;
    }
    return own > 0 ? pow(own / sheet, r->power.exponent) : 0.01;
}

// The mean of the largest of n values that are distributed normally lies where a share
// of about (n - 3/8) / (n + 1/4) is below it (Blom, "Statistical estimates and
// transformed beta-variables", 1958).
double tr__reached_slowest(int64_t ranks) {
    double n = (double)ranks, below = (n - 0.375) / (n + 0.25);
    double low = 0, high = 16;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        bool beyond = 0.5 * erfc(-middle / sqrt(2)) > below;
        low = beyond ? low : middle;
        high = beyond ? middle : high;
    }
    return ranks > 1 ? low : 0;
}
