#include "files/torch/machine.h"

#include "base/memory.h"

#include <string.h>

tr_status tr__pickle_damaged(const tr_pickle *m, const char *what, tr_error *err) {
    return tr_fail(err, TR_IO, "%s: its pickle %s at byte %zu: the file is damaged",
                   m->file->zip.path, what, (size_t)(m->at - m->begin));
}

tr_status tr__pickle_no_memory(const tr_pickle *m, tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to read %s", m->file->zip.path);
}

// ---- bytes and stack

tr_status tr__pickle_take(tr_pickle *m, uint64_t bytes, const unsigned char **out,
                          tr_error *err) {
    if (bytes > (uint64_t)(m->end - m->at)) {
        return tr__pickle_damaged(m, "ends too early", err);
    }
    *out = m->at;
    m->at += bytes;
    return TR_OK;
}

tr_status tr__pickle_number(tr_pickle *m, int bytes, uint64_t *out, tr_error *err) {
    const unsigned char *at = NULL;
    tr_status status = tr__pickle_take(m, (uint64_t)bytes, &at, err);
    *out = 0;
    for (int i = status == TR_OK ? bytes : 0; i-- > 0;) {
        *out = *out << 8 | at[i];
    }
    return status;
}

tr_status tr__pickle_push(tr_pickle *m, tr_torch_value *value, tr_error *err) {
    if (!tr__grow((void **)&m->stack, &m->capacity, m->depth + 1,
                  sizeof(tr_torch_value *))) {
        return tr__pickle_no_memory(m, err);
    }
    m->stack[m->depth++] = value;
    return TR_OK;
}

tr_status tr__pickle_pop(tr_pickle *m, tr_torch_value **out, tr_error *err) {
    if (m->depth == 0 || !m->stack[m->depth - 1]) {
        return tr__pickle_damaged(m, "takes a value that is not there", err);
    }
    *out = m->stack[--m->depth];
    return TR_OK;
}

tr_status tr__pickle_top(const tr_pickle *m, tr_torch_value **out, tr_error *err) {
    if (m->depth == 0 || !m->stack[m->depth - 1]) {
        return tr__pickle_damaged(m, "takes a value that is not there", err);
    }
    *out = m->stack[m->depth - 1];
    return TR_OK;
}

tr_status tr__pickle_mark(const tr_pickle *m, size_t *at, tr_error *err) {
    for (*at = m->depth; *at > 0 && m->stack[*at - 1]; --*at) {
    }
    return *at > 0 ? TR_OK
                   : tr__pickle_damaged(m, "takes values that are not there", err);
}

// ---- memory

tr_status tr__pickle_put(tr_pickle *m, uint64_t at, tr_error *err) {
    tr_torch_value *value = NULL;
    tr_status status = tr__pickle_top(m, &value, err);
    if (status == TR_OK && at > (uint64_t)(m->at - m->begin)) {
        status = tr__pickle_damaged(m, "remembers more values than it has", err);
    }
    if (status == TR_OK && at >= m->remembered) {
        if (!tr__grow((void **)&m->memory, &m->room, (size_t)at + 1,
                      sizeof(tr_torch_value *))) {
            return tr__pickle_no_memory(m, err);
        }
        memset(m->memory + m->remembered, 0,
               ((size_t)at + 1 - m->remembered) * sizeof *m->memory);
        m->remembered = (size_t)at + 1;
    }
    if (status == TR_OK) {
        m->memory[at] = value;
    }
    return status;
}

tr_status tr__pickle_get(tr_pickle *m, uint64_t at, tr_error *err) {
    return at < m->remembered && m->memory[at]
               ? tr__pickle_push(m, m->memory[at], err)
               : tr__pickle_damaged(m, "asks for a value that it has not", err);
}
