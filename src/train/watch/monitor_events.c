// TensorBoard's event file: records of a length, its checksum, a message and its
// checksum (TFRecord), whose messages are protocol buffers (event.proto, summary.proto
// of TensorFlow). All numbers are little-endian, as on the machines that we know.
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/watch/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    HEAD = 12, // of a record: u64 length, u32 checksum of it
    FOOT = 4,
    SCALARS_MAX = 1024, // bytes of a message of scalars
    RECORD_MAX = 1 << 26,
    EVENT_TIME = 1, // fields
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    TENSOR_TYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_STRING = 8,
    TYPE_STRING = 7,
};

// ---- messages

typedef struct message {
    unsigned char *bytes;
    size_t count, room;
} message;

static void put(message *to, const void *data, size_t bytes) {
    if (bytes <= to->room - to->count) { // the caller has made room
        memcpy(to->bytes + to->count, data, bytes);
        to->count += bytes;
    }
}

static void put_varint(message *to, uint64_t value) {
    unsigned char byte;
    do {
        byte = (unsigned char)(value & 0x7f);
        value >>= 7;
        byte |= value ? 0x80 : 0;
        put(to, &byte, 1);
    } while (value);
}

typedef enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 } wire;

static void put_key(message *to, int field, wire type) {
    put_varint(to, (uint64_t)field << 3 | type);
}

static void put_bytes(message *to, int field, const void *data, size_t bytes) {
    put_key(to, field, BYTES);
    put_varint(to, bytes);
    put(to, data, bytes);
}

static void put_begin(message *to, int64_t step) {
    double now = tr__wall_seconds();
    put_key(to, EVENT_TIME, FIXED64);
    put(to, &now, sizeof now);
    put_key(to, EVENT_STEP, VARINT);
    put_varint(to, (uint64_t)step);
}

static void put_scalar(message *summary, const tr_monitor_value *value) {
    unsigned char bytes[SCALARS_MAX];
    message one = {bytes, 0, sizeof bytes};
    const char *tag = tr__monitor_tags[value->tag];
    float simple = (float)value->value;
    put_bytes(&one, VALUE_TAG, tag, strlen(tag));
    put_key(&one, VALUE_SIMPLE, FIXED32);
    put(&one, &simple, sizeof simple);
    put_bytes(summary, SUMMARY_VALUE, one.bytes, one.count);
}

// ---- records

static uint32_t masked(const tr_crc32 *crc, const void *data, size_t bytes) {
    uint32_t sum = tr__crc32(crc, 0, data, bytes);
    return (sum >> 15 | sum << 17) + UINT32_C(0xa282ead8);
}

// The message has HEAD bytes before it, which are filled in, and room for FOOT behind:
// a record is one write, so that a killed run leaves at most its last one cut short.
static tr_status write_record(const tr_event_monitor *to, message *event,
                              tr_error *err) {
    uint64_t length = event->count - HEAD;
    uint32_t sum = masked(&to->crc, event->bytes + HEAD, length);
    memcpy(event->bytes, &length, sizeof length);
    put(event, &sum, sizeof sum);
    sum = masked(&to->crc, &length, sizeof length);
    memcpy(event->bytes + sizeof length, &sum, sizeof sum);
    ssize_t wrote = 0;
    do {
        wrote = write(to->file, event->bytes, event->count);
    } while (wrote < 0 && errno == EINTR);
    return wrote == (ssize_t)event->count
               ? TR_OK
               : tr_fail(err, TR_IO, "%s: cannot write: %s", to->path,
                         strerror(wrote < 0 ? errno : ENOSPC));
}

static tr_status write_version(const tr_event_monitor *to, tr_error *err) {
    static const char version[] = "brain.Event:2";
    unsigned char bytes[SCALARS_MAX];
    message event = {bytes, HEAD, sizeof bytes};
    put_begin(&event, 0);
    put_bytes(&event, EVENT_VERSION, version, sizeof version - 1);
    return write_record(to, &event, err);
}

tr_status tr__event_monitor_put(const tr_event_monitor *to,
                                const tr_monitor_value *values, int count,
                                int64_t samples, tr_error *err) {
    unsigned char bytes[SCALARS_MAX], inner[SCALARS_MAX];
    message event = {bytes, HEAD, sizeof bytes}, summary = {inner, 0, sizeof inner};
    for (int i = 0; i < count; i++) {
        put_scalar(&summary, &values[i]);
    }
    put_begin(&event, samples);
    put_bytes(&event, EVENT_SUMMARY, summary.bytes, summary.count);
    return write_record(to, &event, err);
}

// ---- texts

static void put_metadata(message *value) {
    static const char plugin[] = "text";
    unsigned char name[16], data[16];
    message plugin_name = {name, 0, sizeof name}, metadata = {data, 0, sizeof data};
    put_bytes(&plugin_name, 1, plugin, sizeof plugin - 1);
    put_bytes(&metadata, 1, plugin_name.bytes, plugin_name.count);
    put_bytes(value, VALUE_METADATA, metadata.bytes, metadata.count);
}

// A tensor of one string. `inner` has room for it.
static void put_tensor(message *value, message *inner, const char *text) {
    static const unsigned char one[] = {0x12, 0x02, 0x08, 0x01}; // dim {size: 1}
    inner->count = 0;
    put_key(inner, TENSOR_TYPE, VARINT);
    put_varint(inner, TYPE_STRING);
    put_bytes(inner, TENSOR_SHAPE, one, sizeof one);
    put_bytes(inner, TENSOR_STRING, text, strlen(text));
    put_bytes(value, VALUE_TENSOR, inner->bytes, inner->count);
}

tr_status tr__event_monitor_text(const tr_event_monitor *to, const char *tag,
                                 const char *text, tr_error *err) {
    size_t room = strlen(text) + strlen(tag) + SCALARS_MAX;
    unsigned char *bytes = tr__calloc(2, room);
    if (!bytes) {
        return tr_fail(err, TR_MEMORY, "no memory for a monitor");
    }
    message a = {bytes, 0, room}, b = {bytes + room, 0, room};
    put_bytes(&a, VALUE_TAG, tag, strlen(tag));
    put_metadata(&a);
    put_tensor(&a, &b, text);
    b.count = 0;
    put_bytes(&b, SUMMARY_VALUE, a.bytes, a.count);
    a.count = HEAD;
    put_begin(&a, 0);
    put_bytes(&a, EVENT_SUMMARY, b.bytes, b.count);
    tr_status status = write_record(to, &a, err);
    tr__free(bytes);
    return status;
}

// ---- an earlier process's file

// The step of an event, which begins as ours do; -1: this is none of ours.
static int64_t step_of(const unsigned char *event, size_t bytes) {
    size_t at = 1 + sizeof(double);
    uint64_t step = 0;
    if (bytes < at + 2 || event[0] != (EVENT_TIME << 3 | FIXED64) ||
        event[at] != (EVENT_STEP << 3 | VARINT)) {
        return -1;
    }
    for (int shift = 0; ++at < bytes && shift < 63; shift += 7) {
        step |= (uint64_t)(event[at] & 0x7f) << shift;
        if (!(event[at] & 0x80)) {
            return (int64_t)step;
        }
    }
    return -1;
}

// Bytes of the file up to the first record that is of a later sample or not whole.
static int64_t keep_bytes(const tr_event_monitor *of, int64_t samples) {
    unsigned char head[HEAD], begin[64];
    off_t size = lseek(of->file, 0, SEEK_END), kept = 0;
    while (pread(of->file, head, HEAD, kept) == HEAD) {
        uint64_t length;
        uint32_t sum;
        memcpy(&length, head, sizeof length);
        memcpy(&sum, head + sizeof length, sizeof sum);
        if (sum != masked(&of->crc, &length, sizeof length) || length > RECORD_MAX ||
            kept + HEAD + (off_t)length + FOOT > size) {
            break;
        }
        ssize_t bytes = pread(of->file, begin, sizeof begin, kept + HEAD);
        size_t have = bytes < 0 ? 0 : (size_t)bytes;
        int64_t step = step_of(begin, have < length ? have : length);
        if (step < 0 || step > samples) {
            break;
        }
        kept += HEAD + (off_t)length + FOOT;
    }
    return kept;
}

static tr_status begin(tr_event_monitor *to, int64_t samples, tr_error *err) {
    int64_t kept = samples > 0 ? keep_bytes(to, samples) : 0;
    to->begun = kept == 0;
    if (ftruncate(to->file, kept) != 0) {
        return tr_fail(err, TR_IO, "%s: cannot write: %s", to->path, strerror(errno));
    }
    return to->begun ? write_version(to, err) : TR_OK;
}

tr_status tr__event_monitor_open(tr_event_monitor *to, const char *folder,
                                 int64_t samples, tr_error *err) {
    *to = (tr_event_monitor){.file = -1, .crc = tr__crc32_begin(TR_CRC32_CASTAGNOLI)};
    to->path = tr__format("%s/events.out.tfevents.0.tranche", folder);
    if (!to->path) {
        return tr_fail(err, TR_MEMORY, "no memory for a monitor");
    }
    tr_status status = tr__file_open(to->path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW,
                                     &to->file, err);
    return status == TR_OK ? begin(to, samples, err) : status;
}

void tr__event_monitor_close(tr_event_monitor *to) {
    if (to->path && to->file >= 0) {
        close(to->file);
    }
    tr__free(to->path);
    to->path = NULL;
}
