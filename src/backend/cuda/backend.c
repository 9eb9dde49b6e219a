#include "backend/cuda/backend.h"

#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/modules.h"

#include <stdio.h>
#include <string.h>

// Levels are compute capabilities, the lowest that a kernel is built for first.
static const struct {
    int major, minor;
    const char *name;
    double flops; // of products in f32, a second and multiprocessor, at usual clocks
} levels[] = {
    {8, 0, "sm_80", 19.5e12 / 108}, // A100's data sheet, over its multiprocessors
    {8, 9, "sm_89", 82.6e12 / 128}, // RTX 4090
    {9, 0, "sm_90", 66.9e12 / 132}, // H100 SXM
};

enum { LEVELS = sizeof levels / sizeof *levels };

// Without a device: the newest one, so that plans can be made anywhere.
static tr_target here(void) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    tr_cuda_properties p = {.major = 9, .multiprocessors = 132};
    if (!driver->missing()) {
        driver->properties(&p);
    }
    int level = 0;
    while (level + 1 < LEVELS && (levels[level + 1].major < p.major ||
                                  (levels[level + 1].major == p.major &&
                                   levels[level + 1].minor <= p.minor))) {
        level++;
    }
    return (tr_target){
        .backend = TR_BACKEND_CUDA, .level = level, .workers = p.multiprocessors};
}

static bool updates(const struct tr_optimizer *optimizer) {
    return tr__cuda_update_by(optimizer) != NULL;
}

static const char *level_name(int level) {
    return level >= 0 && level < LEVELS ? levels[level].name : NULL;
}

static int begin(int workers) {
    return workers;
}

static void end(int before) {
    (void)before;
}

static double measure_rate(int workers) {
    (void)workers;
    return 0;
}

static double usual_rate(int level, int workers) {
    return levels[level].flops * workers;
}

const tr_backend tr__cuda_backend = {
    .name = "cuda",
    .discrete = true,
    .open = tr__cuda_open,
    .memory = &tr__cuda_memory,
    .host_memory = &tr__cuda_pinned_memory,
    .queues = &tr__cuda_queues,
    .kernel = tr__cuda_kernel,
    .updates = updates,
    .here = here,
    .level_name = level_name,
    .begin = begin,
    .end = end,
    .measure_rate = measure_rate,
    .usual_rate = usual_rate,
};
