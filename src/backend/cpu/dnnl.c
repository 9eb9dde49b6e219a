#include "backend/cpu/dnnl.h"

dnnl_status_t tr__attributes_create(bool accumulate, dnnl_primitive_attr_t *out) {
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    status =
        status
            ? status
            : dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    status = status ? status : dnnl_post_ops_create(&ops);
    if (!status && accumulate) {
        status = tr__post_sum(ops);
    }
    status = status ? status : dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops) {
        dnnl_post_ops_destroy(ops);
    }
    return status;
}

tr_status tr__dnnl_ran(dnnl_status_t status) {
    return status == dnnl_success         ? TR_OK
           : status == dnnl_out_of_memory ? TR_MEMORY
                                          : TR_INTERNAL;
}

void tr__tensor_point(dnnl_memory_t tensor, const void *data) {
    dnnl_memory_set_data_handle(tensor, (void *)(uintptr_t)data);
}

void tr__tensor_destroy(dnnl_memory_t tensor) {
    if (tensor) {
        dnnl_memory_destroy(tensor);
    }
}

dnnl_status_t tr__primitive_create(dnnl_status_t status, dnnl_engine_t engine,
                                   dnnl_primitive_desc_t desc, tr_primitive *out) {
    tr_layout scratch = {0};
    status = status ? status : dnnl_primitive_create(&out->primitive, desc);
    status =
        status ? status : tr__layout_query(desc, dnnl_query_scratchpad_md, &scratch);
    if (!status) {
        out->scratch_bytes = tr__layout_bytes(&scratch);
        status = tr__layout_memory(&scratch, engine, &out->scratch);
    }
    tr__layout_destroy(&scratch);
    if (desc) {
        dnnl_primitive_desc_destroy(desc);
    }
    return status;
}

void tr__primitive_destroy(tr_primitive *primitive) {
    if (primitive->primitive) {
        dnnl_primitive_destroy(primitive->primitive);
    }
    tr__tensor_destroy(primitive->scratch);
}

dnnl_status_t tr__primitive_run(tr_primitive *primitive, dnnl_stream_t stream,
                                dnnl_exec_arg_t *args, int count, void *scratch) {
    tr__tensor_point(primitive->scratch, scratch);
    args[count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, primitive->scratch};
    dnnl_status_t status =
        dnnl_primitive_execute(primitive->primitive, stream, count, args);
    return status ? status : dnnl_stream_wait(stream);
}
