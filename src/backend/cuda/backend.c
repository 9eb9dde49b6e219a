#include "backend/cuda/backend.h"

#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/modules.h"
#include "base/hash.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

// Levels are compute capabilities, the lowest that a kernel is built for first.
static const struct {
    int major, minor;
    const char *name;
    double flops; // of products in f32, a second and multiprocessor, at usual clocks
} levels[] = {
    // A100's data sheet, over its multiprocessors
    [TR_CUDA_SM_80] = {8, 0, "sm_80", 19.5e12 / 108},
    [TR_CUDA_SM_89] = {8, 9, "sm_89", 82.6e12 / 128}, // RTX 4090
    [TR_CUDA_SM_90] = {9, 0, "sm_90", 66.9e12 / 132}, // H100 SXM
};

enum { LEVELS = sizeof levels / sizeof *levels };

static tr_status find(int number, tr_cuda_properties *p, tr_error *err) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    const char *missing = driver->missing();
    int count = 0;
    if (missing) {
        return tr_fail(err, TR_USAGE, "no CUDA device: %s", missing);
    }
    int error = driver->count(&count);
    if (error == 0 && number >= count) {
        return tr_fail(err, TR_USAGE,
                       "there is no cuda:%d: this machine has %d CUDA "
                       "device%s, counted from 0",
                       number, count, tr__plural(count));
    }
    error = error == 0 ? driver->properties(number, p) : error;
    return error == 0 ? TR_OK
                      : tr_fail(err, TR_USAGE, "no CUDA device: %s",
                                driver->error_text(error));
}

static tr_status device(int number, tr_device *out, tr_error *err) {
    tr_cuda_properties p;
    tr_status status = find(number, &p, err);
    if (status != TR_OK) {
        return status;
    }
    if (!tr__cuda_runs_on(tr__cuda_architectures, p.major, p.minor)) {
        return tr_fail(
            err, TR_USAGE,
            "cuda:%d, %s, is of sm_%d%d, and this build has kernels for sm_%s "
            "alone: build it with that in TR_CUDA_ARCHITECTURES",
            number, p.name, p.major, p.minor, tr__cuda_architectures);
    }
    *out =
        (tr_device){.memory = (int64_t)p.memory, .id = tr__hash(p.uuid, sizeof p.uuid)};
    snprintf(out->name, sizeof out->name, "%s", p.name);
    return TR_OK;
}

static tr_status open_device(int number, tr_error *err) {
    tr_device ignored;
    tr_status status = device(number, &ignored, err);
    return status == TR_OK ? tr__cuda_open(number, err) : status;
}

static int attention(const char **why) {
    const tr_cuda_attention_library *library = &tr__cuda_driver()->attention;
    *why = "this build has no CUDA";
    return library->version ? library->version(why) : 0;
}

// In how much memory the library works is known of sm_90 and of some versions.
static int known_attention(const tr_cuda_properties *p) {
    const char *why = NULL;
    int version = p->major == 9 && p->minor == 0 ? attention(&why) : 0;
    return tr__cuda_attend_knows(version) ? version : 0;
}

// Without a device: the newest one, so that plans can be made anywhere.
static tr_target here(int number) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    tr_cuda_properties p = {.major = 9, .multiprocessors = 132};
    if (!driver->missing()) {
        driver->properties(number, &p);
    }
    int level = 0;
    while (level + 1 < LEVELS && (levels[level + 1].major < p.major ||
                                  (levels[level + 1].major == p.major &&
                                   levels[level + 1].minor <= p.minor))) {
        level++;
    }
    return (tr_target){.backend = TR_BACKEND_CUDA,
                       .level = level,
                       .workers = p.multiprocessors,
                       .attention = known_attention(&p)};
}

static bool updates(const struct tr_optimizer *optimizer) {
    return tr__cuda_optimizer_of(optimizer) != NULL;
}

static const char *level_name(int level) {
    return level >= 0 && level < LEVELS ? levels[level].name : NULL;
}

// What NVIDIA recommends for cuBLAS: 32 MiB from Hopper on, else 4 MiB (cuBLAS library,
// user guide, cublasSetWorkspace).
static int64_t scratch(int level) {
    int64_t bytes = levels[level].major >= 9 ? INT64_C(32) << 20 : INT64_C(4) << 20;
    return bytes + TR_CUDA_SCRATCH_ALIGNMENT;
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

static void say_product(char *dst, size_t size) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    dst[0] = '\0';
    if (driver->say_product) {
        driver->say_product(dst, size);
    }
}

const tr_backend tr__cuda_backend = {
    .name = "cuda",
    .discrete = true,
    .device = device,
    .open = open_device,
    .memory = &tr__cuda_memory,
    .host_memory = &tr__cuda_pinned_memory,
    .queues = &tr__cuda_queues,
    .peers = &tr__cuda_peers,
    .scratch = scratch,
    .kernel = tr__cuda_kernel,
    .updates = updates,
    .here = here,
    .attention = attention,
    .level_name = level_name,
    .begin = begin,
    .end = end,
    .measure_rate = measure_rate,
    .usual_rate = usual_rate,
    .say_product = say_product,
};
