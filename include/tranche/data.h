// Data: samples, which have numbers and are read by number into the rows of a batch;
// surveys of files; tokenizers.
//
// A dataset is a table of functions. Tranche's own formats fill in such a table. A C
// program with other data fills in one itself (tr_dataset_create_callback). Nothing
// here is collective.
#ifndef TRANCHE_DATA_H
#define TRANCHE_DATA_H

#include <tranche/status.h>
#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_dataset tr_dataset;

// Begin with TR_DATASET_SOURCE_INIT, or with `.size = sizeof(tr_dataset_source)`.
typedef struct tr_dataset_source {
    size_t size;       // of this struct
    const char *about; // one line for people, copied; NULL: "callback"
    int64_t samples;   // > 0
    // What `read` delivers; a model takes them by name. Ids, targets and positions may
    // be I64: they are checked and converted, and the dataset has them as I32.
    tr_batch_tensors tensors;
    // I32 inputs lie in [0, vocabulary), I32 targets in [0, classes) or are
    // TR_NO_TARGET. 0: not known; a run checks them against its model's.
    int64_t vocabulary, classes;
    uint64_t hash; // of what the data is: a resumed run compares it
    int64_t bytes; // resident memory that the source holds
    // Reads the samples index[0 .. count). Each number is in [0, samples); they come in
    // any order and may repeat. Writes tensor i of `tensors` to rows[i]: all of [count,
    // ...] of its type and shape, packed. The memory is valid during the call. A
    // reading thread makes the calls, one at a time for each dataset. If two datasets
    // share a source, it must allow two calls at the same time. An error says where in
    // the data it is. on_calling_thread: the thread that is in tr_engine_step,
    // tr_engine_train or tr_engine_evaluate makes the calls instead, for each
    // micro-batch when its turn comes. The step waits for it.
    tr_status (*read)(void *user, const int64_t *index, int64_t count,
                      void *const *rows, tr_error *err);
    void (*destroy)(void *user); // NULL: nothing to do
    void *user;
    bool on_calling_thread;
} tr_dataset_source;

#define TR_DATASET_SOURCE_INIT                                                         \
    {                                                                                  \
        sizeof(tr_dataset_source), NULL, 0, TR_BATCH_TENSORS_INIT, 0, 0, 0, 0, NULL,   \
            NULL, NULL, false                                                          \
    }

// Makes a dataset of the caller's own functions; the table is copied. The dataset
// checks that what `read` delivers lies within vocabulary and classes, and that I64
// values fit into I32. If not, tr_dataset_read returns TR_DATA and names the sample and
// the value. If the call succeeds, the dataset owns `user` and calls `destroy`; if it
// fails, the caller still owns it. TR_USAGE: the table is not valid, or a struct of an
// unknown size. TR_MEMORY.
TR_API tr_status tr_dataset_create_callback(const tr_dataset_source *source,
                                            tr_dataset **out, tr_error *err);

// Makes a dataset of arrays that the caller has in memory: arrays[i] [samples, ...] is
// tensor i of `tensors`, of its type and shape, packed. The arrays must outlive the
// dataset and must not change. A run checks ids and labels against its model's bounds.
// The caller destroys *out. TR_USAGE: a NULL, no samples, or a list that breaks the
// rules of tr_batch_tensors. TR_MEMORY.
TR_API tr_status tr_dataset_create_arrays(const tr_batch_tensors *tensors,
                                          int64_t samples, const void *const *arrays,
                                          tr_dataset **out, tr_error *err);

// How many there are.
TR_API int64_t tr_dataset_samples(const tr_dataset *dataset);
// The tensors of one sample. Owned by the dataset.
TR_API const tr_batch_tensors *tr_dataset_tensors(const tr_dataset *dataset);
TR_API int64_t
tr_dataset_vocabulary(const tr_dataset *dataset);             // 0: not known, or no ids
TR_API int64_t tr_dataset_classes(const tr_dataset *dataset); // 0: not known
// A hash of the data. It covers the format, sizes, order and content of the files, the
// lengths of samples, and the part of a split. The content is all of a file of up to 16
// MiB; of a larger one it is 256 blocks of 64 KiB at even distances. The names of files
// do not count.
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

// The names of a record's parts; NULL: "text", "prompt", "completion", "messages",
// "text_pair", "label", "anchor", "positive", "negative".
typedef struct tr_data_fields {
    const char *text, *prompt, *completion, *messages, *text_pair, *label;
    const char *anchor, *positive, *negative;
} tr_data_fields;

// Which tokens of texts are masked, for the model to predict from the others (Devlin et
// al., arXiv 1810.04805, section 3.1). They are drawn anew in each epoch. The draw
// depends on the seed, the epoch, the sample and the position alone.
typedef struct tr_masking {
    double probability; // that a token is chosen: it gets a label. 0: nothing is masked
    double mask, random; // of the chosen: becomes the mask token; any token. The rest
                         // stays as it is
    bool whole_words;    // all tokens of a word are chosen together
    // A sample is two spans of documents: the second follows the first, or is of
    // another document, each as often. Drawn as masks are.
    bool next_sentence;
} tr_masking;

// What the "data" object of a run file says, and what the model adds to it. All texts
// are read during the call only. Zero or NULL: not given.
//
// Paths are files, folders or globs (* ? [...], as in the shell). A folder stands for
// all regular files below it, sorted by path; a file or folder that links reach twice
// counts once. Below a folder, hidden files and folders are skipped. So are, for bytes,
// binary files, which have a zero byte in the first 8 KiB. `say` is told how many were
// skipped. What cannot be read, or is no regular file, is an error.
//
// bytes, tokens: the files are joined. Sample i is the n + 1 entries from i*n on:
//     its input is the first n of them, its target the last n. Files stay on disk.
//     labels: one file with an entry for each entry of the joined data, in int16 or
//     int32, little endian (the size of the file tells which). The label of an entry is
//     the target in place of the entry itself; -100 means no target. (This is the
//     layout of Hugging Face's `labels`.)
// text: each file is a document, or has several that document_separator separates.
//     Empty documents do not count. The ids of all documents, with eos_token between
//     them, make samples as above. They are computed once, and kept in the user's cache
//     folder (XDG_CACHE_HOME, ~/.cache) until a file, the tokenizer or one of these
//     options changes. With `packing`, a sample is a row of n tokens with several whole
//     documents, each with its eos_token; the last token of a document has no target.
//     An eos_token that is written in the text ends a document, too.
// jsonl: one JSON object a line, a record: a text, a prompt with its completion, or
//     a conversation. All records are of one kind. The chat template of the tokenizer's
//     folder turns a conversation into text; other texts get the token that ends a
//     text. Each record is one sample: its first n tokens, then padding without
//     targets. The label of a position is the token after it, if the loss is on that
//     token. Records with nothing to learn are left out. The ids are kept as those of
//     text are.
// csv: comma separated, "quoted" where needed. A first line in which no field is a
//     number is a header, unless `header` says otherwise. Files with headers have the
//     same columns, in any order: columns are matched by name with those of the first
//     training file. One column is the label, an integer; all others are features, f32.
//     The rows are held in memory.
// npy: one file of numpy.save with features [N, F...], read as F32 [F]: dimensions
//     after the first are flattened, and u8 is read as 0..255. `labels` is one such
//     file of integers [N]. Both stay on disk. Element types f4 f8 i1 u1 i2 u2 i4 u4
//     i8, C order.
// random: `samples` rows of `features` standard normal values, with labels uniform
//     in [0, classes). They are a function of the seed, and are not held in memory.
//
// A validation fraction f of N samples takes round(f * N) of them. bytes, tokens, text,
// random: the last ones. jsonl, csv and npy files are often sorted. Their samples are
// cut into round(f * N) equal runs, and the seed draws one sample of each run; both
// parts keep the order of the file. The rows of packed documents are drawn in the same
// way.
//
// Begin with TR_DATA_OPTIONS_INIT, or with `.size = sizeof(tr_data_options)`, then set
// members.
typedef struct tr_data_options {
    size_t size;        // of this struct
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
    // A folder to skip if it lies below a named folder or matches a glob: the one into
    // which the run writes. NULL, or no such folder: nothing is skipped.
    const char *leave_out;
    const char *tokenizer; // text, jsonl: a tokenizer.json, or a folder that has one
    const char *eos_token; // text: the token between documents; jsonl: that behind
                           // texts and completions; NULL: the one that ends a text by
                           // the tokenizer's folder
    // jsonl: "all", "completion", "assistant" (the text that the template marks, or the
    // messages of this role); NULL: "completion" if records have one, else "all"
    const char *loss_on;
    tr_data_fields fields;     // jsonl
    const char *chat_template; // jsonl: a file, in place of the folder's template
    const char *date; // jsonl: "2026-11-22", what strftime_now of a template shows
    const char *document_separator; // text: what separates documents within a file
    // text, jsonl: samples are rows of whole documents (tr_batch_packed), and a
    // document is never split. A document of more than sequence_length tokens is cut to
    // that length.
    bool packing;
    // text, jsonl: samples are rows of texts for an encoder (tr_batch_texts), with
    // `row_texts` labels each. The label of a text is its number in the data. With 1,
    // each text has a row of its own; with more, a row has several whole texts. A
    // record of jsonl is {"text"}, or two texts with {"text_pair"}; in the format text,
    // document_separator separates texts. Texts get the tokenizer's special tokens and
    // types. Types are below `token_types` (0: the model takes no types). Texts of more
    // than sequence_length tokens are cut. All texts are held in memory. 0: samples are
    // for a decoder.
    int64_t row_texts, token_types;
    // jsonl, for such texts: the kind of their labels (tr_batch_labelled), the number
    // of classes or of values, and the classes' names [label_count] (NULL: their
    // numbers). A record has its label in "label": a name or a number, or with
    // TR_LABELS_SET a list of either.
    tr_label_kind label_kind;
    int64_t label_count;
    const char *const *label_names;
    // text, jsonl: each token of a row has a label (tr_batch_masked). The label of a
    // masked token is the token that was there. tokens, with `labels`: sample i is the
    // n entries from i*n on, each with its own label.
    bool masked;
    tr_masking masking;
    // jsonl: a sample is a group of this many texts, in the order of `fields.anchor`,
    // `fields.positive`, `fields.negative`. Each text has at most sequence_length /
    // group_texts tokens. 0: a record is one text or a pair.
    int64_t group_texts;
    bool plain_special; // text, jsonl: special tokens written in it are text like any
                        // other
    int threads;        // text: that tokenize; 0: all cores
    const char *dtype;  // tokens: "u16" (default), "u32"
    const char *labels; // bytes, tokens, npy
    const char *validation_labels; // the same for validation_paths
    const char *label_column;      // csv: a name or a number from 0; default the last
    // csv, npy: labels may be missing, for samples that are to be classified; all
    // targets are then -100. A csv file has no labels if it has `features` columns in
    // all.
    bool labels_optional;
    tr_header header; // csv
    int64_t samples;  // random
    int64_t features; // random; csv, npy: checked where given
    int64_t classes;  // random; csv, npy: checked where given
    // Images: samples are [height, width, channels] f32. All 0: samples are rows of
    // features. Rows of csv and random data have this layout already. npy files are [N,
    // C, H, W], [N, H, W, C] or, with one channel, [N, H, W].
    int64_t image_height, image_width, image_channels;
    // npy: "channels_first", "channels_last"; NULL: the dimensions decide; if both
    // would fit, channels_first
    const char *image_layout;
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

#define TR_DATA_OPTIONS_INIT                                                           \
    {                                                                                  \
        sizeof(tr_data_options), NULL, NULL, 0, NULL, 0, 0, NULL, 0, 0, NULL, NULL,    \
            NULL, NULL, {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}, NULL,  \
            NULL, NULL, false, 0, 0, TR_LABELS_NONE, 0, NULL, false,                   \
            {0, 0, 0, false, false}, 0, false, 0, NULL, NULL, NULL, NULL, false,       \
            TR_HEADER_AUTO, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0, false, NULL,  \
            NULL, NULL, NULL                                                           \
    }

// Opens the data that the options name. *validation is NULL if they name no validation
// data. `validation` may be NULL; a fraction is split off all the same. The caller
// destroys both. TR_USAGE: the options do not fit together, or a struct of an unknown
// size. TR_DATA: data is missing, empty, too short or wrong; the message says where.
// TR_IO. TR_MEMORY.
TR_API tr_status tr_dataset_open(const tr_data_options *options, tr_dataset **train,
                                 tr_dataset **validation, tr_error *err);

// ---- looking at data before training on it: what a file or folder is, and how many
// samples it makes

typedef enum tr_survey_kind {
    TR_SURVEY_BYTES, // anything: data.format "bytes", or "tokens"
    TR_SURVEY_CSV,
    TR_SURVEY_NPY,
} tr_survey_kind;

enum { TR_SURVEY_RANK_MAX = 8 };

// Begin with TR_SURVEY_INIT.
typedef struct tr_survey {
    size_t size; // of this struct; the library fills no more
    tr_survey_kind kind;
    int64_t files;
    int64_t bytes;
    // Skipped below a folder: hidden files and folders and, if there is text, binary
    // files (as data.format "bytes" does).
    int64_t hidden, binary;

    // CSV: rows, columns without the label's, largest label + 1. NPY: the first
    // dimension, and the elements of one row.
    int64_t rows, features, classes;
    tr_dtype dtype; // NPY
    int rank;
    int64_t dim[TR_SURVEY_RANK_MAX];

    // BYTES, from the first `looked` bytes: whether they are text (UTF-8 without zero
    // bytes); the largest value, if they are read as little-endian u16 and as u32; the
    // likely width of ids: 2 or 4 bytes, 0: unknown.
    int64_t looked;
    bool text;
    int64_t largest_u16, largest_u32;
    int id_width;
} tr_survey;

#define TR_SURVEY_INIT                                                                 \
    {                                                                                  \
        sizeof(tr_survey), TR_SURVEY_BYTES, 0, 0, 0, 0, 0, 0, 0, TR_NONE, 0, {0}, 0,   \
            false, 0, 0, 0                                                             \
    }

// Surveys a file (its name's ".csv" or numpy's magic number tells the format) or a
// folder (all .csv: csv; else the bytes of all files below, joined). TR_DATA: missing,
// unreadable, or a csv or npy file that could not be trained on, with the place.
// TR_USAGE: a struct of an unknown size.
TR_API tr_status tr_data_survey(const char *path, tr_survey *out, tr_error *err);

// How many samples of n positions the bytes (or tokens of `width` bytes) make. A sample
// is a window of n, with one more entry as the last target.
TR_API int64_t tr_survey_windows(const tr_survey *survey, int width, int64_t n);

// ---- tokenizers: text to token ids and back, as Hugging Face's `tokenizers` does it
//
//     tr_tokenizer *tokenizer = NULL;
//     tr_token_ids ids = {0};
//     tr_tokenizer_load("gpt2", &tokenizer, &err);
//     tr_tokenizer_encode(tokenizer, text, bytes, NULL, 0, &ids, &err);
//     ...
//     tr_token_ids_release(&ids);
//     tr_tokenizer_destroy(tokenizer);

// A tokenizer never changes once it is loaded, so threads can share it.
typedef struct tr_tokenizer tr_tokenizer;

// Ids that calls append to. Zero-initialize it; the caller releases it.
typedef struct tr_token_ids {
    int32_t *id; // [count]
    size_t count, capacity;
} tr_token_ids;

// Frees the ids; the struct may be used anew.
TR_API void tr_token_ids_release(tr_token_ids *ids);
// Appends id [count]. TR_MEMORY.
TR_API tr_status tr_token_ids_add(tr_token_ids *ids, const int32_t *id, size_t count,
                                  tr_error *err);

// Begin with TR_ENCODE_OPTIONS_INIT, or with `.size = sizeof(tr_encode_options)`.
typedef struct tr_encode_options {
    size_t size;      // of this struct
    bool add_special; // add the tokens that begin and end a text ("[CLS]", "<s>", ...)
    bool plain_special; // special tokens written in the text are text like any other
} tr_encode_options;

#define TR_ENCODE_OPTIONS_INIT                                                         \
    { sizeof(tr_encode_options), false, false }

// Reads a tokenizer.json; path: the file, a folder that has it, or the name of a model
// on Hugging Face's hub ("ORG/NAME") that its local cache has. TR_IO: it cannot be
// read. TR_DATA: it is damaged, or has a part that is not supported; the message names
// the place in the file. The file's truncation and padding are ignored. The caller
// destroys *out.
TR_API tr_status tr_tokenizer_load(const char *path, tr_tokenizer **out, tr_error *err);
// Accepts NULL.
TR_API void tr_tokenizer_destroy(tr_tokenizer *tokenizer);

// One more than the largest id.
TR_API int64_t tr_tokenizer_vocabulary(const tr_tokenizer *tokenizer);
// The id of a token as it is written in the file, -1: there is none.
TR_API int32_t tr_tokenizer_find(const tr_tokenizer *tokenizer, const char *token);
// A token as it is written in the file (not terminated by a zero), and its bytes; NULL:
// no token has the id. It lives as long as the tokenizer.
TR_API const char *tr_tokenizer_token(const tr_tokenizer *tokenizer, int32_t id,
                                      size_t *bytes);

// Appends the ids of a text. options: NULL for none. threads: 0 for all cores; a text
// is cut and shared among them if that does not change its ids. What is not UTF-8
// counts as U+FFFD. TR_USAGE: a struct of an unknown size. TR_DATA: a regular
// expression of the file takes too long on it.
TR_API tr_status tr_tokenizer_encode(const tr_tokenizer *tokenizer, const char *text,
                                     size_t bytes, const tr_encode_options *options,
                                     int threads, tr_token_ids *ids, tr_error *err);

// How far the files are encoded: bytes of their texts.
typedef struct tr_encoded {
    int64_t done, total;
} tr_encoded;

// Begin with TR_ENCODE_FILES_INIT, then set members.
typedef struct tr_encode_files {
    size_t size;              // of this struct
    const char *const *paths; // [path_count] files, folders or globs, as data.train
    size_t path_count;
    const tr_encode_options *options; // NULL: none
    int threads;                      // 0: all cores
    // Gets the next ids [count], on the calling thread. An error ends the call with it.
    tr_status (*take)(void *user, const int32_t *id, size_t count, tr_encoded so_far,
                      tr_error *err);
    void *user;
} tr_encode_files;

#define TR_ENCODE_FILES_INIT                                                           \
    { sizeof(tr_encode_files), NULL, 0, NULL, 0, NULL, NULL }

// Encodes the files, joined, as one text. It never holds the whole text, or all ids, in
// memory. TR_USAGE: a struct of an unknown size. TR_DATA: a file cannot be read, or
// there are only empty ones. TR_MEMORY, and the errors of tr_tokenizer_encode and
// `take`.
TR_API tr_status tr_tokenizer_encode_files(const tr_tokenizer *tokenizer,
                                           const tr_encode_files *files, tr_error *err);

// The text of ids, which the caller releases with tr_tokenizer_text_release; a zero
// follows it. skip_special: special tokens are left out. Ids that no token has count as
// nothing.
TR_API tr_status tr_tokenizer_decode(const tr_tokenizer *tokenizer, const int32_t *id,
                                     size_t count, bool skip_special, char **text,
                                     size_t *bytes, tr_error *err);
TR_API void tr_tokenizer_text_release(char *text);

// What one thread needs to encode one text after the other. It remembers words that it
// has met. The tokenizer must outlive it.
typedef struct tr_encoder tr_encoder;

// The caller destroys *out. TR_MEMORY.
TR_API tr_status tr_encoder_create(const tr_tokenizer *tokenizer, tr_encoder **out,
                                   tr_error *err);
// Accepts NULL.
TR_API void tr_encoder_destroy(tr_encoder *encoder);
// As tr_tokenizer_encode, on this thread.
TR_API tr_status tr_encoder_encode(tr_encoder *encoder, const char *text, size_t bytes,
                                   const tr_encode_options *options, tr_token_ids *ids,
                                   tr_error *err);

// A text, or a pair of texts, for a model that takes special tokens and types. Begin
// with TR_TEXT_PAIR_INIT, or with `.size = sizeof(tr_text_pair)`.
typedef struct tr_text_pair {
    size_t size;                // of this struct
    const char *first, *second; // second: NULL, there is one text
    size_t first_bytes, second_bytes;
    bool plain_special; // as in tr_encode_options
    // The largest number of tokens, special ones included. A longer text loses its end;
    // in a pair, the longer text loses tokens first (Hugging Face's "longest_first").
    // 0: no limit.
    size_t most;
} tr_text_pair;

#define TR_TEXT_PAIR_INIT                                                              \
    { sizeof(tr_text_pair), NULL, NULL, 0, 0, false, 0 }

// Appends the ids of the texts with the special tokens that the tokenizer's
// post-processor puts around them ("[CLS]", "[SEP]"), and the type of each of these.
// *cut: whether tokens were left out; may be NULL. On this thread. TR_DATA: the file
// does not say how pairs are joined, or `most` leaves no room for a text. TR_MEMORY,
// and the errors of tr_tokenizer_encode.
TR_API tr_status tr_encoder_encode_pair(tr_encoder *encoder, const tr_text_pair *texts,
                                        tr_token_ids *ids, tr_token_ids *types,
                                        bool *cut, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
