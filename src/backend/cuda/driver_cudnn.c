// Attention by cuDNN 9, which need not be installed. Its version is known before a plan
// is made; how it computes an attention is chosen and compiled before the first step,
// once for each shape, and a launch finds that.
#include "backend/cuda/driver_cudnn.h"

#include "backend/cuda/cudnn_plan.h"
#include "backend/cuda/symbol.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// One that is compiled.
typedef struct known {
    tr_cuda_attend_shape of;
    tr_cudnn_plan plan;
    struct known *next;
} known;

static struct {
    tr_cudnn_library by;
    const char *missing;
    int version;
    void *handle; // NULL until the first is compiled
    known *all;
} dnn;

static pthread_once_t looked = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all that is known

// CUDA's own folder is often not among those that are searched.
static void *open_library(void) {
    static const char *const names[] = {"libcudnn.so.9",
                                        "/usr/local/cuda/lib64/libcudnn.so.9"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static void look(void) {
    tr_cudnn_library *by = &dnn.by;
    void *library = open_library();
    if (!library) {
        dnn.missing = "cuDNN (libcudnn.so.9) is not installed, or LD_LIBRARY_PATH does "
                      "not name its folder";
        return;
    }
    bool all =
        tr__cuda_symbol(library, "cudnnGetVersion", &by->version) &&
        tr__cuda_symbol(library, "cudnnGetErrorString", &by->status_name) &&
        tr__cuda_symbol(library, "cudnnGetLastErrorString", &by->last_error) &&
        tr__cuda_symbol(library, "cudnnCreate", &by->create_handle) &&
        tr__cuda_symbol(library, "cudnnSetStream", &by->set_stream) &&
        tr__cuda_symbol(library, "cudnnBackendCreateDescriptor", &by->create) &&
        tr__cuda_symbol(library, "cudnnBackendDestroyDescriptor", &by->destroy) &&
        tr__cuda_symbol(library, "cudnnBackendFinalize", &by->finalize) &&
        tr__cuda_symbol(library, "cudnnBackendSetAttribute", &by->set) &&
        tr__cuda_symbol(library, "cudnnBackendGetAttribute", &by->get) &&
        tr__cuda_symbol(library, "cudnnBackendExecute", &by->execute);
    dnn.missing = all ? NULL : "cuDNN (libcudnn.so.9) is older than 9.0";
    dnn.version = all ? (int)(by->version() / 100) : 0;
}

int tr__cudnn_version(const char **why) {
    pthread_once(&looked, look);
    *why = dnn.missing;
    return dnn.version;
}

static bool are_same(const tr_cuda_attend_shape *a, const tr_cuda_attend_shape *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static known *find(const tr_cuda_attend_shape *shape) {
    known *k = dnn.all;
    while (k && !are_same(&k->of, shape)) {
        k = k->next;
    }
    return k;
}

// The sub-libraries, some hundreds of megabytes, are opened here.
static tr_status open_handle(tr_error *err) {
    int status = dnn.handle ? TR_CUDNN_SUCCESS : dnn.by.create_handle(&dnn.handle);
    return status == TR_CUDNN_SUCCESS
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "cuDNN cannot be readied: %s; \"execution\": {\"attention\": "
                         "\"own\"} does without it",
                         dnn.by.status_name(status));
}

static tr_status add(const tr_cuda_attend_shape *shape, tr_error *err) {
    tr_status status = open_handle(err);
    if (status != TR_OK) {
        return status;
    }
    known *k = tr__calloc(1, sizeof *k);
    if (!k) {
        return tr_fail(err, TR_MEMORY, "no memory for cuDNN's attention");
    }
    const tr_cudnn_device device = {.handle = dnn.handle};
    status = tr__cudnn_choose(&k->plan, &dnn.by, &device, shape, err);
    if (status != TR_OK) {
        tr__free(k);
        return status;
    }
    k->of = *shape;
    k->next = dnn.all;
    dnn.all = k;
    return TR_OK;
}

tr_status tr__cudnn_ready(const tr_cuda_attend_shape *shape, tr_error *err) {
    pthread_mutex_lock(&lock);
    tr_status status = find(shape) ? TR_OK : add(shape, err);
    pthread_mutex_unlock(&lock);
    return status;
}

static int execute(const tr_cuda_attend *a, void *stream) {
    known *k = find(&a->of);
    if (!k) {
        return TR_CUDNN_UNREADY;
    }
    int status = dnn.by.set_stream(dnn.handle, stream);
    status = status == TR_CUDNN_SUCCESS ? tr__cudnn_execute(&k->plan, dnn.handle, a)
                                        : status;
    return status == TR_CUDNN_SUCCESS ? 0 : TR_CUDNN_ERROR + status;
}

int tr__cudnn_attend(const tr_cuda_attend *a, void *stream) {
    pthread_mutex_lock(&lock);
    int error = execute(a, stream);
    pthread_mutex_unlock(&lock);
    return error;
}

const char *tr__cudnn_error_text(int error) {
    return error == TR_CUDNN_UNREADY ? "cuDNN has not been readied for this attention"
                                     : dnn.by.status_name(error - TR_CUDNN_ERROR);
}
