// csv_monitor and tensorboard, by DeepSpeed's keys: what their files hold, also of runs
// that were killed or resumed. The tensorboard package reads them, too, where it is
// there (report/check_events.py).
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char on[] =
    ", \"csv_monitor\": {\"enabled\": true, \"output_path\": \"logs\", \"job_name\": "
    "\"a\"}, \"tensorboard\": {\"enabled\": true, \"output_path\": \"logs\", "
    "\"job_name\": \"b\"}, \"evaluation\": {\"every\": 3}";
static const char loss_file[] = "logs/a/Train_Samples_train_loss.csv";
static const char event_file[] = "logs/b/events.out.tfevents.0.tranche";

// ---- csv

enum { ROWS_MAX = 64 };
typedef struct rows {
    int count;
    int64_t step[ROWS_MAX];
    double value[ROWS_MAX];
} rows;

static rows read_csv(void **state, const char *file, const char *head) {
    size_t bytes = 0;
    rows read = {0};
    char *text = file_read(state, file, &bytes), *at = text + strlen(head);
    assert_memory_equal(text, head, strlen(head));
    for (char *end; (end = strstr(at, "\r\n")) != NULL; at = end + 2) {
        long long step = 0;
        assert_true(read.count < ROWS_MAX);
        assert_int_equal(sscanf(at, "%lld,%lf", &step, &read.value[read.count]), 2);
        read.step[read.count++] = step;
    }
    assert_int_equal(*at, 0);
    free(text);
    return read;
}

// The values are those of metrics.jsonl, at the samples that it has.
static void check_metrics(void **state, const rows *read) {
    size_t bytes = 0;
    int at = 0;
    char *text = file_read(state, "out/metrics.jsonl", &bytes), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *one = json_loads(line, 0, NULL);
        if (json_object_get(one, "loss")) {
            assert_true(at < read->count);
            assert_int_equal(read->step[at], number_in(one, "samples"));
            assert_true(read->value[at] == number_in(one, "loss"));
            at++;
        }
        json_decref(one);
    }
    assert_int_equal(at, read->count);
    free(text);
}

// ---- event files

// Bit by bit, as the polynomial is written.
static uint32_t crc32c(const unsigned char *data, size_t bytes) {
    uint32_t rest = 0xffffffff;
    for (size_t i = 0; i < bytes; i++) {
        rest ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            rest = rest & 1 ? rest >> 1 ^ 0x82f63b78 : rest >> 1;
        }
    }
    return ~rest;
}

static void check_sum(const unsigned char *data, size_t bytes, const void *sum) {
    uint32_t crc = crc32c(data, bytes), found;
    memcpy(&found, sum, sizeof found);
    assert_int_equal(found, (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8));
}

static uint64_t varint(const unsigned char *data, size_t *at) {
    uint64_t value = 0;
    int shift = 0;
    do {
        value |= (uint64_t)(data[*at] & 0x7f) << shift;
        shift += 7;
    } while (data[(*at)++] & 0x80);
    return value;
}

typedef struct events {
    int count;   // records
    rows losses; // of Train/Samples/train_loss
    bool run, plan;
} events;

static void note_loss(events *to, const unsigned char *event, size_t bytes) {
    static const char tag[] = "\x0a\x18Train/Samples/train_loss\x15";
    const unsigned char *at = memmem(event, bytes, tag, sizeof tag - 1);
    size_t step = 10; // behind the time, and the key of the step
    assert_true(event[0] == 0x09 && event[9] == 0x10);
    if (at) {
        float value;
        memcpy(&value, at + sizeof tag - 1, sizeof value);
        assert_true(to->losses.count < ROWS_MAX);
        to->losses.value[to->losses.count] = value;
        to->losses.step[to->losses.count++] = (int64_t)varint(event, &step);
    }
    to->run = to->run || memmem(event, bytes, "train_batch_size", 16);
    to->plan = to->plan || memmem(event, bytes, "ledger at the fullest", 21);
}

static events read_events(void **state) {
    size_t bytes = 0, at = 0;
    events read = {0};
    unsigned char *data = (unsigned char *)file_read(state, event_file, &bytes);
    while (at < bytes) {
        uint64_t length = 0;
        assert_true(at + 12 <= bytes);
        memcpy(&length, data + at, sizeof length);
        check_sum(data + at, 8, data + at + 8);
        assert_true(at + 16 + length <= bytes);
        check_sum(data + at + 12, length, data + at + 12 + length);
        note_loss(&read, data + at + 12, length);
        if (read.count++ == 0) {
            assert_non_null(memmem(data + at + 12, length, "brain.Event:2", 13));
        }
        at += 16 + length;
    }
    free(data);
    return read;
}

static void check_same(const rows *a, const rows *b) {
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        assert_int_equal(a->step[i], b->step[i]);
        assert_true((float)a->value[i] == (float)b->value[i]);
    }
}

// ---- the tests

static void test_values(void **state) {
    run_file(state, text_run, on);
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "monitor"));
    assert_null(strstr(o.err, "tensorboard"));
    outcome_free(&o);
    rows losses = read_csv(state, loss_file, "step,train_loss\r\n");
    assert_int_equal(losses.count, 6);
    check_metrics(state, &losses);
    events read = read_events(state);
    check_same(&read.losses, &losses);
    assert_true(read.run && read.plan);
    assert_int_equal(
        read_csv(state, "logs/a/Train_Samples_lr.csv", "step,lr\r\n").count, 6);
    assert_int_equal(
        read_csv(state, "logs/a/Validation_Samples_loss.csv", "step,loss\r\n").count,
        2);
}

// A run that goes on has each step once; one that begins anew has its own alone.
static void test_resumed(void **state) {
    run_file(state, text_run, on);
    free(succeed(state, LIST("train", "run.json", "--steps", "3")));
    // A process that was killed behind its last checkpoint has left steps, and the
    // beginning of a row and of a record.
    size_t bytes = 0;
    char *csv = file_read(state, loss_file, &bytes);
    char *more = NULL;
    assert_true(asprintf(&more, "%s999,1.5\r\n1000,1.", csv) > 0);
    file_text(state, loss_file, more);
    free(more);
    free(csv);
    char *data = file_read(state, event_file, &bytes);
    file_write(state, event_file, data, bytes);
    char *cut = malloc(bytes + 30);
    memcpy(cut, data, bytes);
    memcpy(cut + bytes, data, 30); // of the first record
    file_write(state, event_file, cut, bytes + 30);
    free(cut);
    free(data);
    free(succeed(state, LIST("train", "run.json")));
    rows losses = read_csv(state, loss_file, "step,train_loss\r\n");
    assert_int_equal(losses.count, 6);
    check_metrics(state, &losses);
    events read = read_events(state);
    check_same(&read.losses, &losses);
    free(
        succeed(state, LIST("train", "run.json", "--resume", "never", "--steps", "2")));
    losses = read_csv(state, loss_file, "step,train_loss\r\n");
    assert_int_equal(losses.count, 2);
    read = read_events(state);
    check_same(&read.losses, &losses);
}

// Without paths the files are in the out folder.
static void test_left_out(void **state) {
    run_file(state, text_run, ", \"csv_monitor\": {\"enabled\": true}");
    free(succeed(state, LIST("train", "run.json")));
    size_t bytes = 0;
    free(file_read(state, "out/DeepSpeedJobName/Train_Samples_lr.csv", &bytes));
    assert_true(bytes > 20);
}

static void test_refused(void **state) {
    run_file(state, text_run, on);
    mkdir(file_path(state, "logs"), 0777);
    mkdir(file_path(state, "logs/a"), 0777);
    file_text(state, loss_file, "somebody's own words\n");
    fail_with(state, NULL, LIST("train", "run.json"), 5,
              LIST("Train_Samples_train_loss.csv", "is no file of csv_monitor"));
    char *text = file_read(state, loss_file, &(size_t){0});
    assert_string_equal(text, "somebody's own words\n");
    free(text);
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "csv_monitor.job_name=a/../.."), 2,
              LIST("csv_monitor.job_name", "name of a folder"));
    file_text(state, "file", "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "csv_monitor.output_path=file"), 5,
              LIST("file"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_values),
        TEST(test_resumed),
        TEST(test_left_out),
        TEST(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
