// Files of the model's and of the tokenizer's folder, for the run's checkpoints.
#include "comm/alone.h"
#include "run/run.h"
#include "text/tokenizer/folder.h"

tr_status tr__run_open_companions(const tr_run *run, tr_companions *out,
                                  tr_error *err) {
    char folder[PATH_MAX] = "";
    tr_status status = TR_OK;
    *out = (tr_companions){0};
    if (run->settings.dry || !tr__comm_leads(run->comm)) {
        return TR_OK;
    }
    if (run->tokenizer) {
        status = tr__tokenizer_folder(run->tokenizer, folder, err);
    }
    if (status == TR_OK) {
        status = tr__companions_open(folder[0] ? folder : run->tokenizer,
                                     run->model_folder, out, err);
    }
    const char *chat_template = tr__config_text(run->config, "data.chat_template");
    if (status == TR_OK && chat_template) {
        status = tr__companions_set_template(out, chat_template, err);
    }
    return status;
}
