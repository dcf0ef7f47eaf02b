/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Predictions for C, and for whatever calls C. `edl_add_model(NAME … PREDICTOR)` makes libNAME-predictor.so,
   which has these functions for its model. Each library has its own: a program that opens several of them finds
   the functions by dlsym.

   Nothing is thrown. What fails returns 0 (`edl_predictor_open`) or -1, and `edl_predictor_error` says why, as
   C++ says it. Any thread may call any function at any time. docs/tasks/predict-from-python.md makes a library. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What this header promises. A library of another number is not to be used. */
enum { edl_predictor_abi = 3 };

/* A model that is open. It is a number: what is closed, or never was open, is refused by name. 0 is none. */
typedef int64_t edl_predictor;

enum edl_kind { edl_any = 0, edl_texts = 1, edl_floats = 2, edl_integers = 3 };

/* What outputs are by the loss of their training. */
enum edl_meaning {
  edl_numbers = 0,
  edl_classes = 1,      /* the softmax of all is a probability for each class */
  edl_probabilities = 2 /* the sigmoid of each is a probability */
};

typedef struct edl_model {
  char const* path;            /* of the checkpoint or file that was read */
  char const* hyperparameters; /* of its training: "rate=0.1;depth=2" */
  uint64_t version;            /* steps that it was trained for */
  uint64_t outputs_size;       /* numbers that it says of one record */
  int32_t inputs, outputs;     /* how many there are */
  int32_t reserved[2];
} edl_model;

/* An input that `feed` asks for, or an output. */
typedef struct edl_feature {
  char const* name;
  uint64_t const* extents; /* of a record's values; none: one value; 0: any number */
  uint64_t first;          /* of an output: where it begins among a record's */
  int32_t rank;            /* extents */
  int32_t kind;            /* edl_kind; outputs are floats */
  int32_t meaning;         /* edl_meaning, of an output */
  int32_t reserved;
  char const* const* classes; /* of edl_classes: their names, as many as there are numbers; null: not known */
} edl_feature;

/* A feature of all records of a batch: the values of the first one, then those of the second. A record of NaN
   alone lacks it, as one whose cell of a table is empty. So does one of no values, unless it is of a feature
   of any number of them. */
typedef struct edl_values {
  char const* name;
  void const* values;      /* float, int64_t, or the bytes of all texts */
  uint64_t count;          /* values, of all records together */
  uint64_t const* starts;  /* records + 1: where the values of each begin, then count; null: all have as many */
  uint64_t const* offsets; /* of texts, count + 1: where each begins in `values`, then bytes; null of numbers */
  uint64_t bytes;          /* of texts: how many there are in `values` */
  int32_t kind;            /* edl_kind */
  int32_t rank;            /* extents; 0 and 1: a flat list */
  uint64_t const* extents; /* of each record's values: they are compared with what the model takes */
} edl_values;

/* How a language model continues a text. Set all of it: what is out of range is refused, 0 for a temperature or for
   top_k is a choice. docs/tasks/generate.md says what each does. */
typedef struct edl_generation {
  uint64_t seed;            /* the same seed makes the same text */
  char const* const* stop;  /* the text ends before any of these; each ends with a zero byte */
  uint64_t stop_count;
  float temperature;        /* usual: 1 */
  float top_p;              /* 1: of all ids */
  float min_p;              /* 0: of all ids */
  float repetition_penalty; /* 1: none */
  int32_t top_k;            /* 0: of all ids */
  int32_t max_tokens;       /* 1 or more */
  int32_t reserved[2];
} edl_generation;

enum edl_text_end { edl_end_of_text = 0, edl_max_tokens = 1, edl_caller = 2 };

/* What was made of a text. */
typedef struct edl_text {
  int32_t prompt_tokens, tokens; /* `tokens`: that the model made */
  int32_t end;                   /* edl_text_end: a text of `stop` or the model's own end; as long as it may be; `hear` */
  int32_t forgot;                /* 1: it did not fit the model's places, which went on with its last half */
} edl_text;

/* Takes bytes of a text, whole characters of UTF-8 where the text is of it. 0: no more is wanted. It must not call
   functions of the same model. */
typedef int32_t (*edl_text_sink)(void* context, char const* piece, uint64_t bytes);

/* The number edl_predictor_abi that the library was made with. */
int32_t edl_predictor_abi_version(void);

/* Opens a checkpoint, a directory of checkpoints, or an exported model. `threads` compute a batch, 1 or more. */
edl_predictor edl_predictor_open(char const* path, int32_t threads);

/* What another thread predicts at this moment is still finished. */
int32_t edl_predictor_close(edl_predictor p);

/* What is pointed to is there until the model is closed. Inputs are those of the training's records. Of a model
   that does not say them they are as far as they can be found out. Those that `feed` does without stand behind
   the others. */
int32_t edl_predictor_describe(edl_predictor p, edl_model* into);
int32_t edl_predictor_input(edl_predictor p, int32_t which, edl_feature* into);
int32_t edl_predictor_output(edl_predictor p, int32_t which, edl_feature* into);

/* Predicts `records` at once, 1 or more. What `inputs` have beyond what `feed` asks for is not looked at, but where
   something that it asks for is not given, it may be misspelt: an error. `outputs` has room for `capacity` numbers,
   records × outputs_size or more. Where it fails nothing of it is written. */
int32_t edl_predictor_predict(edl_predictor p, edl_values const* inputs, uint64_t inputs_count, uint64_t records,
                              float* outputs, uint64_t capacity);

/* Opens a language model to continue texts, and nothing else: edl_predictor_generate. `tokenizer`: a tokenizer.json
   or tokenizer.model that says what its ids stand for; null: they are bytes. */
edl_predictor edl_predictor_open_texts(char const* path, char const* tokenizer, int32_t threads);

/* Continues a text of `bytes` bytes. `hear` gets it piece by piece, without the prompt; `made` may be null. A model
   makes one text at a time: another thread's call waits. */
int32_t edl_predictor_generate(edl_predictor p, char const* prompt, uint64_t bytes, edl_generation const* how,
                               edl_text_sink hear, void* context, edl_text* made);

/* Why the last call of this thread that failed did so: one line, there until another one fails. */
char const* edl_predictor_error(void);

#ifdef __cplusplus
}
#endif
