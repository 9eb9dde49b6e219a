// Pickles of protocol 2, as torch.save writes them: a machine with a stack and a memory
// (Lib/pickletools.py of CPython says what each operation does).
#include "files/torch/machine.h"

#include "base/memory.h"

#include <string.h>

static tr_status push_new(tr_pickle *m, tr_torch_kind kind, tr_torch_value **out,
                          tr_error *err) {
    tr_status status = tr__torch_new(m->file, kind, out, err);
    return status == TR_OK ? tr__pickle_push(m, *out, err) : status;
}

// ---- constants

static tr_status do_protocol(tr_pickle *m, tr_error *err) {
    uint64_t protocol = 0;
    tr_status status = tr__pickle_number(m, 1, &protocol, err);
    return status == TR_OK && protocol != 2
               ? tr_fail(err, TR_IO,
                         "%s: is a pickle of protocol %d, and torch.save writes 2: "
                         "load it in PyTorch and save it again without "
                         "pickle_protocol",
                         m->file->zip.path, (int)protocol)
               : status;
}

static tr_status do_none(tr_pickle *m, tr_error *err) {
    tr_torch_value *value = NULL;
    return push_new(m, TR_TORCH_NONE, &value, err);
}

static tr_status push_integer(tr_pickle *m, tr_torch_kind kind, int64_t number,
                              tr_error *err) {
    tr_torch_value *value = NULL;
    tr_status status = push_new(m, kind, &value, err);
    if (status == TR_OK) {
        value->integer = number;
    }
    return status;
}

static tr_status do_bool(tr_pickle *m, int value, tr_error *err) {
    return push_integer(m, TR_TORCH_BOOL, value, err);
}

static tr_status do_int(tr_pickle *m, int bytes, tr_error *err) {
    uint64_t number = 0;
    tr_status status = tr__pickle_number(m, bytes, &number, err);
    int64_t value = bytes == 4 ? (int32_t)(uint32_t)number : (int64_t)number;
    return status == TR_OK ? push_integer(m, TR_TORCH_INTEGER, value, err) : status;
}

// So many bytes, the highest of which has the sign.
static tr_status push_long(tr_pickle *m, uint64_t bytes, tr_error *err) {
    const unsigned char *at = NULL;
    tr_status status = tr__pickle_take(m, bytes, &at, err);
    if (status != TR_OK || bytes > 8) {
        return status == TR_OK ? push_integer(m, TR_TORCH_UNKNOWN, 0, err) : status;
    }
    uint64_t number = bytes > 0 && at[bytes - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = bytes; i-- > 0;) {
        number = number << 8 | at[i];
    }
    return push_integer(m, TR_TORCH_INTEGER, (int64_t)number, err);
}

static tr_status do_long(tr_pickle *m, int bytes, tr_error *err) {
    uint64_t length = 0;
    tr_status status = tr__pickle_number(m, bytes, &length, err);
    return status == TR_OK ? push_long(m, length, err) : status;
}

static tr_status do_float(tr_pickle *m, tr_error *err) { // big-endian
    const unsigned char *at = NULL;
    tr_torch_value *value = NULL;
    uint64_t bits = 0;
    tr_status status = tr__pickle_take(m, 8, &at, err);
    status = status == TR_OK ? push_new(m, TR_TORCH_FLOAT, &value, err) : status;
    for (int i = 0; i < 8 && status == TR_OK; i++) {
        bits = bits << 8 | at[i];
    }
    if (status == TR_OK) {
        memcpy(&value->number, &bits, sizeof value->number);
    }
    return status;
}

static tr_status do_text(tr_pickle *m, tr_error *err) {
    uint64_t bytes = 0;
    const unsigned char *at = NULL;
    tr_torch_value *value = NULL;
    tr_status status = tr__pickle_number(m, 4, &bytes, err);
    status = status == TR_OK ? tr__pickle_take(m, bytes, &at, err) : status;
    if (status == TR_OK) {
        status = tr__torch_new_text(m->file, at, (size_t)bytes, &value, err);
    }
    return status == TR_OK ? tr__pickle_push(m, value, err) : status;
}

// ---- memory

static tr_status do_put(tr_pickle *m, int bytes, tr_error *err) {
    uint64_t at = 0;
    tr_status status = tr__pickle_number(m, bytes, &at, err);
    return status == TR_OK ? tr__pickle_put(m, at, err) : status;
}

static tr_status do_get(tr_pickle *m, int bytes, tr_error *err) {
    uint64_t at = 0;
    tr_status status = tr__pickle_number(m, bytes, &at, err);
    return status == TR_OK ? tr__pickle_get(m, at, err) : status;
}

// ---- lists and dicts

static tr_status do_mark(tr_pickle *m, tr_error *err) {
    return tr__pickle_push(m, NULL, err);
}

static tr_status do_pop(tr_pickle *m, tr_error *err) {
    tr_torch_value *value = NULL;
    return tr__pickle_pop(m, &value, err);
}

static tr_status do_pop_mark(tr_pickle *m, tr_error *err) {
    size_t at = 0;
    tr_status status = tr__pickle_mark(m, &at, err);
    m->depth = status == TR_OK ? at - 1 : m->depth;
    return status;
}

static tr_status do_dict(tr_pickle *m, tr_error *err) {
    tr_torch_value *value = NULL;
    return push_new(m, TR_TORCH_DICT, &value, err);
}

static tr_status do_list(tr_pickle *m, tr_error *err) {
    tr_torch_value *value = NULL;
    return push_new(m, TR_TORCH_LIST, &value, err);
}

// The values from `at` on go into `to`; what lies on the stack from `keep` on is gone.
static tr_status move(tr_pickle *m, tr_torch_value *to, size_t at, size_t keep,
                      tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = at; i < m->depth && status == TR_OK; i++) {
        status = tr__torch_append(to, m->stack[i], err);
    }
    m->depth = keep;
    return status;
}

static tr_status push_tuple(tr_pickle *m, size_t at, size_t keep, tr_error *err) {
    tr_torch_value *value = NULL;
    tr_status status = tr__torch_new(m->file, TR_TORCH_LIST, &value, err);
    status = status == TR_OK ? move(m, value, at, keep, err) : status;
    return status == TR_OK ? tr__pickle_push(m, value, err) : status;
}

static tr_status do_tuple(tr_pickle *m, tr_error *err) {
    size_t at = 0;
    tr_status status = tr__pickle_mark(m, &at, err);
    return status == TR_OK ? push_tuple(m, at, at - 1, err) : status;
}

static tr_status do_tuple_of(tr_pickle *m, int count, tr_error *err) {
    for (size_t i = 1; i <= (size_t)count; i++) {
        if (i > m->depth || !m->stack[m->depth - i]) {
            return tr__pickle_damaged(m, "takes values that are not there", err);
        }
    }
    return push_tuple(m, m->depth - (size_t)count, m->depth - (size_t)count, err);
}

// The values from `at` on are added to the one that lies `below` under them; what is
// added to an object of a class that is not known is gone.
static tr_status add(tr_pickle *m, size_t at, size_t below, tr_torch_kind kind,
                     tr_error *err) {
    tr_torch_value *to = at > below ? m->stack[at - below - 1] : NULL;
    if (!to || (to->kind != kind && to->kind != TR_TORCH_OBJECT) ||
        (kind == TR_TORCH_DICT && (m->depth - at) % 2 != 0)) {
        return tr__pickle_damaged(m, "adds to what takes none", err);
    }
    if (to->kind == TR_TORCH_OBJECT) {
        m->depth = at - below;
        return TR_OK;
    }
    return move(m, to, at, at - below, err);
}

static tr_status add_behind_mark(tr_pickle *m, tr_torch_kind kind, tr_error *err) {
    size_t at = 0;
    tr_status status = tr__pickle_mark(m, &at, err);
    return status == TR_OK ? add(m, at, 1, kind, err) : status;
}

static tr_status do_append(tr_pickle *m, tr_error *err) {
    tr_torch_value *value = NULL;
    tr_status status = tr__pickle_top(m, &value, err);
    return status == TR_OK ? add(m, m->depth - 1, 0, TR_TORCH_LIST, err) : status;
}

static tr_status do_appends(tr_pickle *m, tr_error *err) {
    return add_behind_mark(m, TR_TORCH_LIST, err);
}

static tr_status do_set(tr_pickle *m, tr_error *err) {
    if (m->depth < 3 || !m->stack[m->depth - 1] || !m->stack[m->depth - 2]) {
        return tr__pickle_damaged(m, "takes values that are not there", err);
    }
    return add(m, m->depth - 2, 0, TR_TORCH_DICT, err);
}

static tr_status do_sets(tr_pickle *m, tr_error *err) {
    return add_behind_mark(m, TR_TORCH_DICT, err);
}

// ---- objects

static tr_status take_line(tr_pickle *m, const unsigned char **text, size_t *bytes,
                           tr_error *err) {
    const unsigned char *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!end) {
        return tr__pickle_damaged(m, "ends too early", err);
    }
    *text = m->at;
    *bytes = (size_t)(end - m->at);
    m->at = end + 1;
    return TR_OK;
}

static tr_status do_class(tr_pickle *m, tr_error *err) {
    const unsigned char *module = NULL, *name = NULL;
    size_t module_bytes = 0, name_bytes = 0;
    tr_torch_value *value = NULL;
    tr_status status = take_line(m, &module, &module_bytes, err);
    status = status == TR_OK ? take_line(m, &name, &name_bytes, err) : status;
    if (status == TR_OK &&
        (memchr(module, '\0', module_bytes) || memchr(name, '\0', name_bytes))) {
        status = tr__pickle_damaged(m, "names no class", err);
    }
    status = status == TR_OK ? push_new(m, TR_TORCH_CLASS, &value, err) : status;
    if (status != TR_OK) {
        return status;
    }
    value->text = tr__calloc(module_bytes + name_bytes + 2, 1);
    if (!value->text) {
        return tr__pickle_no_memory(m, err);
    }
    memcpy(value->text, module, module_bytes);
    value->text[module_bytes] = '.';
    memcpy(value->text + module_bytes + 1, name, name_bytes);
    return TR_OK;
}

static tr_status do_call(tr_pickle *m, tr_error *err) {
    tr_torch_value *arguments = NULL, *class = NULL, *made = NULL;
    tr_status status = tr__pickle_pop(m, &arguments, err);
    status = status == TR_OK ? tr__pickle_pop(m, &class, err) : status;
    if (status == TR_OK) {
        status = tr__torch_make(m->file, class, arguments, &made, err);
    }
    return status == TR_OK ? tr__pickle_push(m, made, err) : status;
}

// An object's own state: that of a dict is its attributes.
static tr_status do_build(tr_pickle *m, tr_error *err) {
    tr_torch_value *value = NULL;
    tr_status status = tr__pickle_pop(m, &value, err);
    return status == TR_OK ? tr__pickle_top(m, &value, err) : status;
}

static tr_status do_storage(tr_pickle *m, tr_error *err) {
    tr_torch_value *said = NULL, *made = NULL;
    tr_status status = tr__pickle_pop(m, &said, err);
    status =
        status == TR_OK ? tr__torch_make_storage(m->file, said, &made, err) : status;
    return status == TR_OK ? tr__pickle_push(m, made, err) : status;
}

static tr_status do_stop(tr_pickle *m, tr_error *err) {
    tr_torch_value *value = NULL;
    tr_status status = tr__pickle_pop(m, &value, err);
    m->file->root = value;
    m->stopped = true;
    return status;
}

// ---- the program

// One operation: with a number (of bytes, of values, or the value itself), or without.
typedef struct operation {
    tr_status (*run)(tr_pickle *m, tr_error *err);
    tr_status (*run_with)(tr_pickle *m, int number, tr_error *err);
    int number;
} operation;

static const operation operations[256] = {
    ['('] = {do_mark},
    ['.'] = {do_stop},
    ['0'] = {do_pop},
    ['1'] = {do_pop_mark},
    [')'] = {do_list},
    [']'] = {do_list},
    ['}'] = {do_dict},
    ['a'] = {do_append},
    ['e'] = {do_appends},
    ['s'] = {do_set},
    ['u'] = {do_sets},
    ['t'] = {do_tuple},
    [0x85] = {NULL, do_tuple_of, 1},
    [0x86] = {NULL, do_tuple_of, 2},
    [0x87] = {NULL, do_tuple_of, 3},
    ['q'] = {NULL, do_put, 1},
    ['r'] = {NULL, do_put, 4},
    ['h'] = {NULL, do_get, 1},
    ['j'] = {NULL, do_get, 4},
    ['N'] = {do_none},
    [0x88] = {NULL, do_bool, 1},
    [0x89] = {NULL, do_bool, 0},
    ['J'] = {NULL, do_int, 4},
    ['K'] = {NULL, do_int, 1},
    ['M'] = {NULL, do_int, 2},
    [0x8a] = {NULL, do_long, 1},
    [0x8b] = {NULL, do_long, 4},
    ['G'] = {do_float},
    ['X'] = {do_text},
    ['c'] = {do_class},
    ['R'] = {do_call},
    [0x81] = {do_call},
    ['b'] = {do_build},
    ['Q'] = {do_storage},
    [0x80] = {do_protocol},
};

static tr_status run(tr_pickle *m, unsigned char code, tr_error *err) {
    const operation *o = &operations[code];
    if (!o->run && !o->run_with) {
        return tr_fail(err, TR_IO,
                       "%s: its pickle has an operation %#x at byte %zu, which "
                       "torch.save does not write",
                       m->file->zip.path, code, (size_t)(m->at - m->begin) - 1);
    }
    return o->run ? o->run(m, err) : o->run_with(m, o->number, err);
}

tr_status tr__torch_unpickle(tr_torch_file *file, const unsigned char *pickle,
                             size_t bytes, tr_error *err) {
    tr_pickle m = {.file = file, .begin = pickle, .at = pickle, .end = pickle + bytes};
    tr_status status = TR_OK;
    while (status == TR_OK && !m.stopped) {
        const unsigned char *code = NULL;
        status = tr__pickle_take(&m, 1, &code, err);
        status = status == TR_OK ? run(&m, *code, err) : status;
    }
    tr__free(m.stack);
    tr__free(m.memory);
    return status;
}
