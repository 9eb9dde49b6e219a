#include "data/sources/scan.h"

#include "data/sources/scan_cache.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "ids in files are little endian, and read as they are");

enum {
    CHUNK = 1 << 20, // bytes that a thread reads at once
    BATCH = 64,      // chunks between two looks at the clock
    THREADS_MAX = 4, // more wait for the disk or the memory
    WIDTH_MIN = 64,  // 16-bit numbers; of fewer, chance may make the pattern
};

// Entries of 1, 2 or 4 bytes, 16 bytes of them at a time.
typedef uint8_t lanes __attribute__((vector_size(16)));
typedef uint16_t lanes_u16 __attribute__((vector_size(16)));
typedef uint32_t lanes_u32 __attribute__((vector_size(16)));

// All bits of the entries that differ, or that are larger in `a`.
static inline lanes differ(int width, lanes a, lanes b) {
    return width == 1   ? (lanes)(a != b)
           : width == 2 ? (lanes)((lanes_u16)a != (lanes_u16)b)
                        : (lanes)((lanes_u32)a != (lanes_u32)b);
}
static inline lanes exceed(int width, lanes a, lanes b) {
    return width == 1   ? (lanes)(a > b)
           : width == 2 ? (lanes)((lanes_u16)a > (lanes_u16)b)
                        : (lanes)((lanes_u32)a > (lanes_u32)b);
}

static inline lanes all_of(int width, uint32_t entry) {
    return width == 1   ? (lanes){0} + (uint8_t)entry
           : width == 2 ? (lanes)((lanes_u16){0} + (uint16_t)entry)
                        : (lanes)((lanes_u32){0} + entry);
}

static inline uint32_t entry_at(int width, const void *raw, int64_t index) {
    uint32_t entry = 0;
    memcpy(&entry, (const char *)raw + index * width, (size_t)width);
    return entry;
}

static inline void raise(uint32_t *most, uint32_t entry) {
    *most = entry > *most ? entry : *most;
}

// most: the largest at even and at odd places. Inlined, so that each width has a loop
// of its own.
static inline __attribute__((always_inline)) void raise_most(int width,
                                                             const unsigned char *raw,
                                                             int64_t count, bool labels,
                                                             uint32_t most[2]) {
    enum { PARTS = 4, BYTES = sizeof(lanes) };
    const uint32_t mask = UINT32_MAX >> (32 - 8 * width);
    const uint32_t single = labels ? (uint32_t)TR_NO_TARGET & mask : 0;
    const lanes none = all_of(width, single);
    const int64_t each = BYTES / width;
    lanes top[PARTS] = {{0}};
    int64_t i = 0;
    for (; i + PARTS * each <= count; i += PARTS * each) {
        for (int p = 0; p < PARTS; p++) {
            lanes value;
            memcpy(&value, raw + i * width + p * BYTES, BYTES);
            value &= differ(width, value, none);
            lanes more = exceed(width, value, top[p]);
            top[p] = (value & more) | (top[p] & ~more);
        }
    }
    for (; i < count; i++) {
        uint32_t entry = entry_at(width, raw, i);
        raise(&most[i & 1], entry == single ? 0 : entry);
    }
    for (int64_t l = 0; l < PARTS * each; l++) {
        raise(&most[l & 1], entry_at(width, top, l));
    }
}

void tr__scan_most(const unsigned char *raw, int width, int64_t count, bool labels,
                   uint32_t most[2]) {
    if (width == 1) {
        raise_most(1, raw, count, labels, most);
    } else if (width == 2) {
        raise_most(2, raw, count, labels, most);
    } else {
        raise_most(4, raw, count, labels, most);
    }
}

// Entries [first, first + count) of the joined files.
typedef struct span {
    int64_t first, count;
} span;

static tr_status scan_chunk(const tr_scan *scan, span chunk, unsigned char *raw,
                            uint32_t most[2], tr_error *err) {
    tr_status status =
        tr__joined_read(scan->joined, chunk.first, chunk.count, raw, err);
    if (status == TR_OK) {
        tr__scan_most(raw, scan->joined->width, chunk.count, scan->labels, most);
    }
    return status;
}

// A batch of chunks, and what was found in those that are done.
typedef struct batch_work {
    const tr_scan *scan;
    span batch;
    unsigned char *raw; // [threads * CHUNK]
    pthread_mutex_t lock;
    uint32_t *most; // [2]
    tr_error failed;
} batch_work;

static void scan_item(void *work, int64_t item, int thread) {
    batch_work *w = work;
    int64_t per_chunk = CHUNK / w->scan->joined->width;
    uint32_t here[2] = {0, 0};
    tr_error mine = {0};
    span chunk = {w->batch.first + item * per_chunk,
                  tr__min_i64(per_chunk, w->batch.count - item * per_chunk)};
    scan_chunk(w->scan, chunk, w->raw + (size_t)thread * CHUNK, here, &mine);
    pthread_mutex_lock(&w->lock);
    w->most[0] = here[0] > w->most[0] ? here[0] : w->most[0];
    w->most[1] = here[1] > w->most[1] ? here[1] : w->most[1];
    w->failed = w->failed.status == TR_OK ? mine : w->failed;
    pthread_mutex_unlock(&w->lock);
}

// raw: [threads * CHUNK]
static tr_status scan_batch(const tr_scan *scan, span batch, int threads,
                            unsigned char *raw, uint32_t most[2], tr_error *err) {
    batch_work w = {.scan = scan,
                    .batch = batch,
                    .raw = raw,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .most = most};
    int64_t chunks = tr__ceil_div(batch.count, CHUNK / scan->joined->width);
    tr__parallel_items(threads, chunks, scan_item, &w);
    return w.failed.status == TR_OK
               ? TR_OK
               : tr_fail(err, w.failed.status, "%s", w.failed.message);
}

static void tell(tr_scan *scan, size_t file, int64_t done) {
    const tr_joined *joined = scan->joined;
    char what[1024];
    snprintf(what, sizeof what, "checking the ids of %s",
             joined->files.entry[file].path);
    tr__tell(&scan->tell, what, scan->done + done,
             tr__joined_count(joined) * joined->width);
}

tr_scan tr__scan_begin(const tr_joined *joined, bool labels,
                       const tr_data_options *options) {
    return (tr_scan){
        .joined = joined,
        .labels = labels,
        .tell = tr__tell_begin(options),
    };
}

static tr_status read_file(tr_scan *scan, size_t file, uint32_t most[2],
                           tr_error *err) {
    const tr_joined *joined = scan->joined;
    int64_t first = joined->start[file], count = joined->start[file + 1] - first;
    int64_t per_batch = (int64_t)BATCH * CHUNK / joined->width;
    int64_t chunks = tr__ceil_div(count * joined->width, CHUNK);
    int threads = (int)tr__min_i64(tr__min_i64(THREADS_MAX, tr__parallel_threads()),
                                   tr__max_i64(1, chunks));
    unsigned char *raw = tr__calloc((size_t)threads, CHUNK);
    tr_status status =
        raw ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to look at the data");
    most[0] = most[1] = 0;
    for (int64_t at = 0; at < count && status == TR_OK; at += per_batch) {
        span batch = {first + at, tr__min_i64(per_batch, count - at)};
        status = scan_batch(scan, batch, threads, raw, most, err);
        tell(scan, file, (at + batch.count) * joined->width);
    }
    tr__free(raw);
    return status;
}

tr_status tr__scan_file(tr_scan *scan, size_t file, uint32_t most[2], tr_error *err) {
    const tr_joined *joined = scan->joined;
    const tr_file_entry *one = &joined->files.entry[file];
    tr_scan_key key = {one->path, joined->width, scan->labels};
    tr_scan_entry before = tr__scan_cache_entry(&key);
    tr_status status = TR_OK;
    if (!tr__scan_cache_read(&before, most)) {
        status = read_file(scan, file, most, err);
        tr_scan_entry after = tr__scan_cache_entry(&key);
        if (status == TR_OK && strcmp(before.path, after.path) == 0) {
            tr__scan_cache_write(&after, most);
        }
    }
    scan->done += one->bytes;
    return status;
}

int tr__scan_width(const unsigned char *raw, int64_t count, uint32_t high) {
    uint32_t most[2] = {0, 0};
    int64_t larger = 0;
    if (count < WIDTH_MIN) {
        return 0;
    }
    tr__scan_most(raw, 2, count, false, most);
    for (int64_t i = 1; i < count; i += 2) {
        larger += (raw[2 * i] | (uint32_t)raw[2 * i + 1] << 8) > high;
    }
    if (most[1] <= high && most[0] > high) {
        return 4;
    }
    return larger > count / 4 ? 2 : 0;
}
