// Datasets: samples that have numbers and are read by number into rows of a batch.
//
// A dataset is a table of functions. Tranche's own formats fill in such a table. A C
// program with other data fills in one itself (tr_dataset_create_callback). Nothing
// here is collective.
#ifndef TRANCHE_DATA_H
#define TRANCHE_DATA_H

#include <tranche/batch.h>
#include <tranche/status.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_dataset tr_dataset;

typedef struct tr_dataset_source {
    const char *about;        // one line for people, copied; NULL: "callback"
    int64_t samples;          // > 0
    tr_batch_tensors tensors; // what `read` delivers; a model takes them by name
    int64_t vocabulary; // I32 inputs lie in [0, vocabulary); 0: not known, unchecked
    int64_t classes;    // targets lie in [0, classes) or are TR_NO_TARGET; 0: as above
    uint64_t hash;      // of what the data is: a resumed run compares it
    int64_t bytes;      // resident memory that the source holds
    // Reads the samples index[0 .. count), each in [0, samples), any order, repeats
    // allowed. rows[i] is where tensor i of `tensors` goes: [count, ...] of its type
    // and shape, packed; the memory is the caller's, during the call. All of it is
    // written. Called from a reading thread, one call at a time for each dataset; a
    // source with two datasets over it must stand two calls at once. An error says
    // where in the data it is.
    tr_status (*read)(void *user, const int64_t *index, int64_t count,
                      void *const *rows, tr_error *err);
    void (*destroy)(void *user); // NULL: nothing to do
    void *user;
} tr_dataset_source;

// Makes a dataset of the caller's own functions; the table is copied. The dataset
// checks what `read` delivers against vocabulary and classes. If the call succeeds, the
// dataset owns `user` and calls `destroy`; if it fails, the caller still owns it.
// TR_USAGE: the table is not valid. TR_MEMORY.
TR_API tr_status tr_dataset_create_callback(const tr_dataset_source *source,
                                            tr_dataset **out, tr_error *err);

TR_API int64_t tr_dataset_samples(const tr_dataset *dataset);
// The tensors of one sample. Owned by the dataset.
TR_API const tr_batch_tensors *tr_dataset_tensors(const tr_dataset *dataset);
TR_API int64_t
tr_dataset_vocabulary(const tr_dataset *dataset);             // 0: not known, or no ids
TR_API int64_t tr_dataset_classes(const tr_dataset *dataset); // 0: not known
// A hash of the data: of format, sizes, order and content of its files (all of a file
// up to 16 MiB; of a larger one 256 blocks of 64 KiB at even distances), of lengths,
// and of the part of a split. The names of files do not count.
TR_API uint64_t tr_dataset_hash(const tr_dataset *dataset);
// Bytes of resident memory that the dataset holds. Memory that both parts of a split
// share counts with the training part.
TR_API int64_t tr_dataset_bytes(const tr_dataset *dataset);
// One line for people, such as "3 files, 1.40 MiB in windows of 64 bytes".
TR_API const char *tr_dataset_about(const tr_dataset *dataset);

// Reads the samples index[0 .. count): rows[i] [count, ...] gets tensor i of
// tr_dataset_tensors, rows packed. No allocation. TR_DATA and TR_IO name the file and
// the position; TR_USAGE: an index out of range. One call at a time for each dataset.
TR_API tr_status tr_dataset_read(tr_dataset *dataset, const int64_t *index,
                                 int64_t count, void *const *rows, tr_error *err);
TR_API void tr_dataset_destroy(tr_dataset *dataset); // NULL-safe

// Whether the first line of a csv file is a header.
typedef enum tr_header {
    TR_HEADER_AUTO, // where no field of it is a number
    TR_HEADER_YES,
    TR_HEADER_NO,
} tr_header;

// The names of a record's parts; NULL: "text", "prompt", "completion", "messages".
typedef struct tr_data_fields {
    const char *text, *prompt, *completion, *messages;
} tr_data_fields;

// What the "data" object of a run file says, and what the model adds to it. All texts
// are read during the call only. Zero or NULL: not given.
//
// Paths are files, folders (all regular files below, sorted by path; a file or folder
// that links reach twice is taken once) or globs (* ? [...], as the shell's). Below a
// folder, hidden files and folders are passed over, and, for bytes, binary files (a
// zero byte in the first 8 KiB); `say` is told how many. What cannot be read, or is no
// regular file, is an error.
//
// bytes, tokens: the files are joined; sample i is entries [i*n, i*n + n], its input
//     the first n and its target the last n of them. Files stay on disk.
//     labels: one file with one entry for each entry of the joined data, int16 or int32
//     little endian (told apart by its size). The label of an entry replaces it as the
//     target; -100 there is no target. (The layout of Hugging Face's `labels`.)
// text: each file is a document, or several that document_separator separates; an empty
//     one is none. The ids of all documents, with eos_token between them, are samples
//     as above. They are made once, and kept in the user's cache folder
//     (XDG_CACHE_HOME, ~/.cache) until a file, the tokenizer or one of these options
//     changes. With `packing`, a sample is a row of n tokens with several whole
//     documents, each with its eos_token, and the target of a document's last token is
//     none. An eos_token that is written in the text ends a document, too.
// jsonl: one JSON object a line: a text, a prompt with its completion, or a
//     conversation, all of one kind. A conversation becomes text by the chat template
//     of the tokenizer's folder; other texts get the token at their end that ends a
//     text. Each record is one sample: its first n tokens, and padding without a target
//     behind them. The label of a position is the token after it, where the loss is on
//     that. Records with nothing to learn are left out. What is made of the records is
//     kept as that of text is.
// csv: comma separated, "quoted" where need be. A first line in which no field is a
//     number is a header (`header` says it otherwise). Files with headers have the same
//     columns, in any order: they are matched by name with those of the first training
//     file. One column is the label, an integer; all others are features, f32. Held in
//     memory.
// npy: one file of numpy.save, features [N, F...] read as F32 [F] (dimensions after the
//     first flattened, u8 as 0..255), and `labels`, one of integers [N]. Both stay on
//     disk. Element types f4 f8 i1 u1 i2 u2 i4 u4 i8, C order.
// random: `samples` rows of `features` standard normal values, labels uniform in
//     [0, classes), a function of the seed; held nowhere.
//
// A validation fraction f of N samples takes round(f * N) of them. bytes, tokens,
// text, random: the last ones. jsonl, csv, npy (often sorted): one from each of
// round(f * N) equal runs of samples, drawn by the seed; both halves keep the order of
// the file. So it is with packed documents, whose rows are the samples.
typedef struct tr_data_options {
    const char *format; // "bytes", "tokens", "text", "jsonl", "csv", "npy", "random"
    const char *const *paths;
    size_t path_count;
    const char *const *validation_paths; // either these or the fraction
    size_t validation_path_count;
    double validation_fraction; // [0, 1)
    const char *order;          // "shuffled" (default), "sequential"
    int64_t sequence_length;    // n; bytes, tokens, text, jsonl
    int64_t vocabulary; // bytes (default 256), tokens, text, jsonl (default: the
                        // tokenizer's)
    // A folder that is passed over where it lies below others that are named, or is
    // matched by a glob: that into which the run writes. NULL, or not there: none.
    const char *leave_out;
    const char *tokenizer; // text, jsonl: a tokenizer.json, or a folder that has one
    const char *eos_token; // text: the token between documents; jsonl: that behind
                           // texts and completions; NULL: the one that ends a text by
                           // the tokenizer's folder
    const char *loss_on;   // jsonl: "all", "completion", "assistant" (what the template
                           // marks, or the messages of this role); NULL: "completion"
                           // where there is one, else "all"
    tr_data_fields fields; // jsonl
    const char *chat_template; // jsonl: a file, in place of the folder's template
    const char *date; // jsonl: "2026-11-22", what strftime_now of a template shows
    const char *document_separator; // text: what separates documents within a file
    // text, jsonl: samples are rows of whole documents (tr_batch_packed), and a
    // document is never split. One of more than sequence_length tokens is cut to them.
    bool packing;
    bool plain_special; // text, jsonl: special tokens written in it are text like any
                        // other
    int threads;        // text: that tokenize; 0: all cores
    const char *dtype;  // tokens: "u16" (default), "u32"
    const char *labels; // bytes, tokens, npy
    const char *validation_labels; // the same for validation_paths
    const char *label_column;      // csv: a name or a number from 0; default the last
    // csv, npy: labels may be missing, as where samples are to be classified; all
    // targets are then -100. A csv has none where it has `features` columns in all.
    bool labels_optional;
    tr_header header; // csv
    int64_t samples;  // random
    int64_t features; // random; csv, npy: checked where given
    int64_t classes;  // random; csv, npy: checked where given
    // Images: samples are [height, width, channels] f32; all 0: rows of features. csv
    // and random rows are that already; npy files are [N, C, H, W], [N, H, W, C] or,
    // with one channel, [N, H, W].
    int64_t image_height, image_width, image_channels;
    const char *image_layout; // npy: "channels_first", "channels_last"; NULL: as the
                              // sides say, where both could be channels_first
    // npy images: each value becomes (value - mean) / std of its channel. One number
    // for all channels, or one for each; none: 0 and 1.
    const double *image_mean, *image_std;
    size_t image_mean_count, image_std_count;
    uint64_t seed; // random, split
    // true: the samples will not be read. The function scans and hashes only what a
    // plan needs, and tr_dataset_hash is not valid.
    bool sizes_only;
    // Gets lines for people: how many files were skipped, how far a long scan has come.
    // NULL: nobody.
    void (*say)(void *user, const char *line);
    void *say_user;
    // Called now and then while text is tokenized. If it returns true, the call ends
    // with TR_INTERRUPTED. NULL: the call is not interrupted.
    bool (*stop)(void *user);
    void *stop_user;
} tr_data_options;

// Opens the data that the options name. *validation is NULL if they name no validation
// data; `validation` may be NULL (a fraction is split off all the same). The caller
// destroys both. TR_USAGE: the options do not fit together. TR_DATA: data is missing,
// empty, too short or wrong; the message says where. TR_IO. TR_MEMORY.
TR_API tr_status tr_dataset_open(const tr_data_options *options, tr_dataset **train,
                                 tr_dataset **validation, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
