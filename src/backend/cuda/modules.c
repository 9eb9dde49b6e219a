#include "backend/cuda/modules.h"

#include "backend/cuda/driver.h"

#include <pthread.h>
#include <stdlib.h>

static tr_status load(const tr_cuda_module *module, tr_error *err) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    void *loaded = NULL;
    int error = driver->load(module->image, &loaded);
    if (error != 0) {
        return tr_fail(err, TR_USAGE,
                       "the CUDA device cannot load the kernels of %s: %s",
                       module->file, driver->error_text(error));
    }
    for (tr_cuda_function *const *f = module->functions; *f; f++) {
        error = driver->function(loaded, (*f)->name, &(*f)->loaded);
        if (error != 0) {
            return tr_fail(err, TR_INTERNAL, "%s has no kernel %s: %s", module->file,
                           (*f)->name, driver->error_text(error));
        }
    }
    return TR_OK;
}

static tr_status open_and_load(int number, tr_error *err) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    int error = driver->open(number);
    if (error != 0) {
        return tr_fail(err, TR_USAGE, "the CUDA device cannot be opened: %s",
                       driver->error_text(error));
    }
    tr_status status = TR_OK;
    for (const tr_cuda_module *m = tr__cuda_modules; m->file && status == TR_OK; m++) {
        status = load(m, err);
    }
    return status;
}

tr_status tr__cuda_open(int number, tr_error *err) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int opened = -1;
    tr_status status = TR_OK;
    pthread_mutex_lock(&lock);
    if (opened < 0) {
        status = open_and_load(number, err);
        opened = status == TR_OK ? number : -1;
    } else if (opened != number) {
        status = tr_fail(err, TR_USAGE,
                         "this process already works on cuda:%d, and it can work on "
                         "one GPU alone: start another for cuda:%d",
                         opened, number);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// one: 80, which `suffix` follows
static bool is_for(long one, char suffix, int major, int minor) {
    bool same = one / 10 == major;
    switch (suffix) {
    case 'a':
        return same && one % 10 == minor;
    case '+':
        return one <= 10L * major + minor;
    default:
        return same && one % 10 <= minor;
    }
}

bool tr__cuda_runs_on(const char *architectures, int major, int minor) {
    for (const char *at = architectures; *at;) {
        char *end;
        long one = strtol(at, &end, 10);
        if (end == at) {
            return false;
        }
        if (is_for(one, *end, major, minor)) {
            return true;
        }
        for (at = end; *at && !(*at >= '0' && *at <= '9'); at++) {
        }
    }
    return false;
}
