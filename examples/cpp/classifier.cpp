// The small classifier (100-500-10, ReLU, cross-entropy, Adam) from C++, a step at a
// time, on arrays of the program's own.
#include "handle.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

static const int64_t samples = 1000, features = 100, classes = 10;

static const char run_text[] = R"({
    "model": {"model_type": "mlp", "layer_sizes": [100, 500, 10]}, "epochs": 5,
    "seed": 1, "train_batch_size": 64, "gradient_clipping": 0,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, "out": "out/classifier-cpp"})";

struct arrays {
    std::vector<float> x;
    std::vector<int32_t> label;
};

// Random features in [-1, 1); the label is the largest of the first ten: learnable.
static arrays make_arrays() {
    arrays a{std::vector<float>(samples * features), std::vector<int32_t>(samples)};
    uint32_t state = 1;
    for (float &value : a.x) {
        state = state * 1664525u + 1013904223u; // Numerical Recipes' generator
        value = float(int32_t(state)) / 2147483648.0f;
    }
    for (int64_t i = 0; i < samples; i++) {
        const float *row = &a.x[i * features];
        a.label[i] = int32_t(std::max_element(row, row + classes) - row);
    }
    return a;
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *) {
    const arrays &a = *static_cast<const arrays *>(user);
    for (int64_t i = 0; i < count; i++) {
        std::copy_n(&a.x[index[i] * features], features,
                    static_cast<float *>(rows[0]) + i * features);
        static_cast<int32_t *>(rows[1])[i] = a.label[index[i]];
    }
    return TR_OK;
}

int main() try {
    arrays a = make_arrays();
    tr_dataset_source source = TR_DATASET_SOURCE_INIT;
    source.samples = samples;
    source.tensors = tr_batch_features(features);
    source.classes = classes;
    source.hash = 1; // a run is resumed only on the same data
    source.read = read_rows;
    source.user = &a;
    auto data = make(tr_dataset_destroy, tr_dataset_create_callback, &source);
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    parts.train = data.get();
    const char *const settings[] = {"resume=never", nullptr};
    auto run = make(tr_run_destroy, tr_run_open, run_text, settings, &parts);
    auto engine = make(tr_engine_destroy, tr_engine_create, run.get(), nullptr);
    tr_step_result result = TR_STEP_RESULT_INIT;
    while (result.step < tr_run_steps(run.get())) {
        call(tr_engine_step, engine.get(), &result);
        if (result.step % 16 == 0) {
            std::printf("step %2d  loss %.4f  accuracy %.0f%%\n", int(result.step),
                        result.loss, 100 * result.accuracy);
        }
    }
    call(tr_engine_save, engine.get());
    return 0;
} catch (const failure &error) {
    std::fprintf(stderr, "classifier: %s\n", error.what());
    return tr_status_exit(error.status);
}
