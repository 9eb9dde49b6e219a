#include "backend/cuda/modules.h"

#include "backend/cuda/driver.h"

#include <pthread.h>
#include <stdbool.h>

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

static tr_status open_and_load(tr_error *err) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    const char *missing = driver->missing();
    if (missing) {
        return tr_fail(err, TR_USAGE, "no CUDA device: %s", missing);
    }
    int error = driver->open();
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

tr_status tr__cuda_open(tr_error *err) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool opened;
    pthread_mutex_lock(&lock);
    tr_status status = opened ? TR_OK : open_and_load(err);
    opened = status == TR_OK;
    pthread_mutex_unlock(&lock);
    return status;
}
