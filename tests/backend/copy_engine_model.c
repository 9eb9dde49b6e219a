#include "backend/copy_engine_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    PAGE = TR_CARRY_ALIGN,
    WORLDS = 2, // orders are of one or the other
    WORLD = MODEL_MEMORY / WORLDS,
    FILE_WORLD = MODEL_FILE / WORLDS,
    LEAST_ROOM = PAGE,
};

typedef struct model {
    tr_copy_engine *copy_engine;
    bool file;
    uint64_t random;
    char *memory;        // [MODEL_MEMORY], the copy engine's
    char *expected;      // [MODEL_MEMORY]
    char *expected_file; // [MODEL_FILE]
} model;

void *page_memory(size_t bytes) {
    void *memory = aligned_alloc(PAGE, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    return memory;
}

// Knuth's 64-bit linear congruential generator ("The Art of Computer Programming",
// volume 2); its high bits.
uint32_t draw_below(uint64_t *state, uint32_t bound) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % bound;
}

static int64_t draw_multiple(model *m, int64_t least, int64_t most, int64_t unit) {
    uint32_t choices = (uint32_t)((most - least) / unit + 1);
    return least + draw_below(&m->random, choices) * unit;
}

// Mostly small; some longer than a piece of the copy engine's work.
static int64_t draw_bytes(model *m, int64_t most, int64_t unit) {
    int64_t small = draw_below(&m->random, 4) > 0 ? 16 * PAGE : most;
    return draw_multiple(m, unit, small, unit);
}

static void fill(model *m) {
    float *numbers = (float *)(void *)m->expected;
    int64_t *whole = (int64_t *)(void *)(m->expected + WORLD);
    for (int64_t i = 0; i < WORLD / (int64_t)sizeof *numbers; i++) {
        numbers[i] = (float)draw_below(&m->random, 1000) / 7;
    }
    for (int64_t i = 0; i < WORLD / (int64_t)sizeof *whole; i++) {
        whole[i] = (int64_t)draw_below(&m->random, 1000);
    }
    memcpy(m->memory, m->expected, MODEL_MEMORY);
}

static void do_it(model *m, const tr_carry *order) {
    char *to = m->expected + ((char *)order->to - m->memory);
    const char *from = m->expected + ((const char *)order->from - m->memory);
    switch (order->kind) {
    case TR_CARRY_COPY:
        memcpy(to, from, (size_t)order->bytes);
        break;
    case TR_CARRY_READ:
        memcpy(to, m->expected_file + order->offset, (size_t)order->bytes);
        break;
    case TR_CARRY_WRITE:
        memcpy(m->expected_file + order->offset, from, (size_t)order->bytes);
        break;
    }
}

static tr_carry draw_transfer(model *m, int world) {
    bool write = draw_below(&m->random, 2);
    int64_t bytes = draw_bytes(m, WORLD, PAGE);
    char *memory = m->memory + world * WORLD + draw_multiple(m, 0, WORLD - bytes, PAGE);
    return (tr_carry){
        .kind = write ? TR_CARRY_WRITE : TR_CARRY_READ,
        .from = memory,
        .to = memory,
        .bytes = bytes,
        .offset = world * FILE_WORLD + draw_multiple(m, 0, FILE_WORLD - bytes, PAGE),
    };
}

// From one half of what a random cut makes of the world into the other.
static tr_carry draw_copy(model *m, int world) {
    int64_t cut = draw_multiple(m, LEAST_ROOM, WORLD - LEAST_ROOM, 8);
    int64_t most = cut < WORLD - cut ? cut : WORLD - cut;
    int64_t bytes = draw_bytes(m, most < 16 * PAGE ? 16 * PAGE : most, 8);
    bytes = bytes < most ? bytes : most;
    char *base = m->memory + world * WORLD;
    char *low = base + draw_multiple(m, 0, cut - bytes, 8);
    char *high = base + cut + draw_multiple(m, 0, WORLD - cut - bytes, 8);
    bool up = draw_below(&m->random, 2);
    return (tr_carry){
        .kind = TR_CARRY_COPY,
        .from = up ? low : high,
        .to = up ? high : low,
        .bytes = bytes,
    };
}

static void start_one(model *m) {
    int world = (int)draw_below(&m->random, WORLDS);
    bool transfer = m->file && draw_below(&m->random, 2);
    tr_carry order = transfer ? draw_transfer(m, world) : draw_copy(m, world);
    tr_carry given = order;
    if (order.kind == TR_CARRY_READ) {
        given.from = NULL; // what an order does not need is not looked at
    } else if (order.kind == TR_CARRY_WRITE) {
        given.to = NULL;
    }
    int64_t before = tr__copy_engine_newest(m->copy_engine);
    int64_t ticket = tr__copy_engine_start(m->copy_engine, &given);
    assert_int_equal(ticket, before + 1);
    assert_int_equal(tr__copy_engine_newest(m->copy_engine), ticket);
    do_it(m, &order);
}

static void wait_all(model *m) {
    tr_error err = {0};
    tr_status status = tr__copy_engine_wait(
        m->copy_engine, tr__copy_engine_newest(m->copy_engine), &err);
    if (status != TR_OK) {
        fail_msg("%s", err.message);
    }
    assert_memory_equal(m->memory, m->expected, MODEL_MEMORY);
}

static void check_file(model *m) {
    for (int64_t at = 0; at < MODEL_FILE; at += MODEL_MEMORY) {
        int64_t left = MODEL_FILE - at;
        int64_t bytes = left < MODEL_MEMORY ? left : MODEL_MEMORY;
        tr_carry order = {TR_CARRY_READ, NULL, m->memory, bytes, at};
        int64_t ticket = tr__copy_engine_start(m->copy_engine, &order);
        assert_int_equal(tr__copy_engine_wait(m->copy_engine, ticket, NULL), TR_OK);
        assert_memory_equal(m->memory, m->expected_file + at, bytes);
    }
}

void model_check(tr_copy_engine *copy_engine, bool file, int orders, uint64_t seed,
                 char *memory) {
    model m = {copy_engine,
               file,
               seed,
               memory,
               page_memory(MODEL_MEMORY),
               page_memory(MODEL_FILE)};
    fill(&m);
    for (int i = 0; i < orders; i++) {
        start_one(&m);
        if (draw_below(&m.random, 40) == 0) {
            wait_all(&m);
        }
    }
    wait_all(&m);
    if (file) {
        check_file(&m);
    }
    free(m.expected);
    free(m.expected_file);
}
