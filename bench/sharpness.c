// The sharpness of a minimum: the largest curvature of a run's training loss at its
// weights, the eigenvalue of the Hessian H of largest magnitude.
//
//     sharpness RUN.json --samples N [--model FOLDER] [--iterations N] [--set K=V]...
//
// Power iteration: v = H v / |H v|, with curvature v' H v, where
//
//     H v = (g(w + h v) - g(w - h v)) / (2 h),   g the gradient,
//
// over all N samples of the training data as one effective batch, which is cut into
// micro-batches as the run file says: the memory is that of training. Prints one JSON
// object. The loss must be a function of the weights: no dropout.
#include <tranche/engine.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 64, OWN_SETS = 8 };

static const double step_share = 1e-3; // h, of the norm of the weights
static const double tolerance = 1e-3;  // of the curvature, between two iterations

typedef struct options {
    const char *file, *model;
    long samples, iterations;
    const char *set[SETS_MAX];
    size_t set_count;
} options;

// All weights, one after the other.
typedef struct surface {
    tr_engine *engine;
    long samples;
    int64_t steps; // so far: each is an epoch
    size_t tensors, count;
    double loss; // where the last gradient was taken
} surface;

static tr_status no_memory(tr_error *err) {
    snprintf(err->message, sizeof err->message, "no memory");
    return TR_MEMORY;
}

// ---- weights and gradients

static tr_tensor_info tensor_at(const surface *s, size_t i) {
    tr_tensor_info info = TR_TENSOR_INFO_INIT;
    tr_engine_tensor(s->engine, i, &info, NULL);
    return info;
}

static void surface_open(surface *s, tr_engine *engine, long samples) {
    *s = (surface){
        .engine = engine, .samples = samples, .tensors = tr_engine_tensors(engine)};
    while (s->tensors > 0 && tensor_at(s, s->tensors - 1).of_model) {
        s->tensors--; // they come last
    }
    for (size_t i = 0; i < s->tensors; i++) {
        s->count += (size_t)tr_shape_count(tensor_at(s, i).shape);
    }
}

// A part of all tensors, one after the other.
static tr_status get_all(const surface *s, const char *part, float *values,
                         tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < s->tensors && status == TR_OK; i++) {
        tr_tensor_info info = tensor_at(s, i);
        int64_t count = tr_shape_count(info.shape);
        status = tr_engine_read(s->engine, info.name, part, 0, count, values, err);
        values += count;
    }
    return status;
}

static tr_status set_weights(surface *s, const float *weights, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < s->tensors && status == TR_OK; i++) {
        tr_tensor_info info = tensor_at(s, i);
        int64_t count = tr_shape_count(info.shape);
        status =
            tr_engine_write(s->engine, info.name, "values", 0, count, weights, err);
        weights += count;
    }
    return status;
}

// A step at rate 0 makes the gradient and changes nothing.
static tr_status gradient_at(surface *s, const float *weights, float *gradient,
                             tr_error *err) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_status status = set_weights(s, weights, err);
    if (status == TR_OK) {
        status = tr_engine_step(s->engine, &result, err);
    }
    if (status == TR_OK && (result.batch != s->samples || result.epoch != s->steps++)) {
        snprintf(err->message, sizeof err->message,
                 "--samples %ld is not how many the training data has: gradients would "
                 "be of different ones",
                 s->samples);
        status = TR_DATA;
    }
    if (status == TR_OK && result.skipped) {
        snprintf(err->message, sizeof err->message, "the loss is not finite");
        status = TR_NUMBERS;
    }
    if (status == TR_OK) {
        status = get_all(s, "gradient", gradient, err);
    }
    s->loss = result.loss;
    return status;
}

// ---- power iteration

typedef struct vectors {
    float *weights, *direction, *moved, *ahead, *behind; // [count] each
} vectors;

static double dot(const float *a, const float *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

static void scale(float *x, double factor, size_t count) {
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)(x[i] * factor);
    }
}

// Of length 1, with a component along every eigenvector.
static void draw_direction(float *x, size_t count) {
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u; // Numerical Recipes' generator
        x[i] = (float)(int32_t)state / 2147483648.0f;
    }
    scale(x, 1 / sqrt(dot(x, x, count)), count);
}

// ahead = H direction.
static tr_status curve(surface *s, vectors *v, double h, tr_error *err) {
    tr_status status = TR_OK;
    for (int side = 0; side < 2 && status == TR_OK; side++) {
        double by = side == 0 ? h : -h;
        for (size_t i = 0; i < s->count; i++) {
            v->moved[i] = (float)(v->weights[i] + by * v->direction[i]);
        }
        status = gradient_at(s, v->moved, side == 0 ? v->ahead : v->behind, err);
    }
    for (size_t i = 0; i < s->count; i++) {
        v->ahead[i] = (float)(((double)v->ahead[i] - v->behind[i]) / (2 * h));
    }
    return status;
}

static tr_status iterate(surface *s, vectors *v, long most, tr_error *err) {
    double length = sqrt(dot(v->weights, v->weights, s->count));
    double h = step_share * fmax(length, 1e-3), curvature = 0, change = INFINITY;
    long done = 0;
    tr_status status = gradient_at(s, v->weights, v->ahead, err);
    double loss = s->loss;
    draw_direction(v->direction, s->count);
    while (status == TR_OK && done < most && change > tolerance) {
        status = curve(s, v, h, err);
        double now = dot(v->direction, v->ahead, s->count);
        double norm = sqrt(dot(v->ahead, v->ahead, s->count));
        change = fabs(now - curvature) / fmax(fabs(now), 1e-30);
        curvature = now;
        done++;
        if (norm == 0) {
            break;
        }
        memcpy(v->direction, v->ahead, s->count * sizeof *v->direction);
        scale(v->direction, 1 / norm, s->count);
    }
    if (status == TR_OK) {
        printf("{\"curvature\": %.9g, \"loss\": %.9g, \"weights\": %zu, "
               "\"iterations\": %ld, \"change\": %.3g}\n",
               curvature, loss, s->count, done, change);
    }
    return status;
}

static tr_status measure(tr_engine *engine, const options *o, tr_error *err) {
    surface s;
    surface_open(&s, engine, o->samples);
    float *memory = calloc(5 * s.count, sizeof *memory);
    if (!memory) {
        return no_memory(err);
    }
    vectors v = {memory, memory + s.count, memory + 2 * s.count, memory + 3 * s.count,
                 memory + 4 * s.count};
    tr_status status = get_all(&s, "values", v.weights, err);
    if (status == TR_OK) {
        status = iterate(&s, &v, o->iterations, err);
    }
    free(memory);
    return status;
}

// ---- the run

// The run as the file has it, at rate 0, with one effective batch that is all samples.
static size_t settings(const options *o, long samples, char batch[64],
                       const char *set[SETS_MAX + OWN_SETS]) {
    static const char *const own[] = {
        "optimizer={\"type\": \"SGD\", \"params\": {\"lr\": 0}}",
        "scheduler={\"type\": \"constant\"}",
        "gradient_clipping=0",
        "steps=1000000",
        "epochs=null",
        "data.order=sequential",
    };
    size_t count = 0;
    for (size_t i = 0; i < o->set_count; i++) {
        set[count++] = o->set[i];
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        set[count++] = own[i];
    }
    if (samples > 0) {
        snprintf(batch, 64, "train_batch_size=%ld", samples);
        set[count++] = batch;
    }
    return count;
}

static tr_status make_run(tr_run *run, const options *o, tr_error *err) {
    const char *set[SETS_MAX + OWN_SETS];
    char batch[64];
    size_t count = settings(o, o->samples, batch, set);
    tr_status status = tr_run_load_file(run, o->file, err);
    if (status == TR_OK) {
        status = tr_run_set(run, "resume", "never", err);
    }
    if (status == TR_OK && o->model) {
        status = tr_run_set_text(run, "model", o->model, err);
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = tr_run_assign(run, set[i], err);
    }
    return status == TR_OK ? tr_run_resolve(run, err) : status;
}

static tr_status run(const options *o, tr_error *err) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_status status = tr_run_create(&run, err);
    if (status == TR_OK) {
        status = make_run(run, o, err);
    }
    if (status == TR_OK) {
        status = tr_run_make_plan(run, &plan, err);
    }
    if (status == TR_OK) {
        status = tr_engine_create(run, plan, &engine, err);
    }
    if (status == TR_OK) {
        status = measure(engine, o, err);
    }
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return status;
}

static long number_of(const char *text) {
    char *end = NULL;
    long value = strtol(text, &end, 10);
    return end == text || *end || value < 1 ? 0 : value;
}

static bool read_options(int argc, char **argv, options *o) {
    *o = (options){.iterations = 100};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-' && !o->file) {
            o->file = argv[i];
            continue;
        }
        if (!value) {
            return false;
        }
        i++;
        if (strcmp(argv[i - 1], "--model") == 0) {
            o->model = value;
        } else if (strcmp(argv[i - 1], "--samples") == 0) {
            o->samples = number_of(value);
        } else if (strcmp(argv[i - 1], "--iterations") == 0) {
            o->iterations = number_of(value);
        } else if (strcmp(argv[i - 1], "--set") == 0 && o->set_count < SETS_MAX) {
            o->set[o->set_count++] = value;
        } else {
            return false;
        }
    }
    return o->file && o->samples > 0 && o->iterations > 0;
}

int main(int argc, char **argv) {
    options o;
    tr_error err = {0};
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: sharpness RUN.json --samples N [--model FOLDER] "
                        "[--iterations N] [--set KEY=VALUE]...\n");
        return tr_status_exit(TR_USAGE);
    }
    tr_status status = run(&o, &err);
    if (status != TR_OK) {
        fprintf(stderr, "sharpness: %s\n", err.message);
    }
    return tr_status_exit(status);
}
