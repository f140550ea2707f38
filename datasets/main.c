/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata: makes indexed datasets from text, and looks at those that exist.
 *
 * Exit status: 0 done; 1 the dataset is damaged, or could not be written; 2 usage, or an input that cannot be
 * read. */
#include "datasets/command.h"
#include "datasets/stop.h"
#include "schema/streams.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: nxdata build INPUT… -o PREFIX [OPTION…]\n"
    "       nxdata prepare PLAN [--workers N]\n"
    "       nxdata merge PREFIX… -o PREFIX [--force]\n"
    "       nxdata split PREFIX SHARES -o PREFIX [--force]\n"
    "       nxdata show PREFIX [OPTION…]\n"
    "       nxdata info PREFIX\n"
    "       nxdata check PREFIX\n"
    "       nxdata merge-adapter MODEL ADAPTER -o FOLDER\n"
    "\n"
    "Indexed datasets, PREFIX.bin and PREFIX.idx, as nxrun and Megatron-LM read them.\n"
    "\n"
    "build   makes one from files, in order; - is standard input, a folder stands for\n"
    "        its files, or was saved by Hugging Face datasets. A text file is one\n"
    "        document, each line of a .jsonl file another (both may be compressed:\n"
    "        gzip, zstd), each row of an .arrow file, each document of an .idx file.\n"
    "        Without a tokenizer each byte of a text is one token 0 … 255; lists of\n"
    "        integers are tokens already\n"
    "          -o PREFIX        where to write\n"
    "          --add-special    what the tokenizer puts around a text, as bos\n"
    "          --append-eod     the tokenizer's end of a text ends each document; of\n"
    "                           bytes it is token 256 (model.vocab is then 257)\n"
    "          --chosen NAME    the field with the answer that was chosen, --rejected\n"
    "                           NAME the one that was not (rejected), to the prompt\n"
    "                           in --field: a pair of documents for DPO, ORPO and\n"
    "                           reward models\n"
    "          --completion NAME  the field with what follows the prompt, which is in\n"
    "                           --field (prompt): the completion counts in the loss\n"
    "          --eod TOKEN      ends each document with the token of this text\n"
    "          --field NAME     the field with the text or tokens (text); a.b is\n"
    "                           field b of object a\n"
    "          --force          replaces a dataset that exists\n"
    "          --kind KIND      of all inputs: text, lines (each line a document),\n"
    "                           jsonl, arrow, indexed\n"
    "          --labels NAME    the field with the labels of the tokens; -100: no\n"
    "                           loss\n"
    "          --last-counts    of --chosen and --rejected, for a reward model: their\n"
    "                           last token alone counts, a second end of the text\n"
    "          --limit N        reads the first N documents only\n"
    "          --lines          is --kind lines\n"
    "          --loss-on WHAT   of dialogues and completions: answers (the default),\n"
    "                           or all\n"
    "          --max-prompt-tokens N  of a prompt that does not fit with its answers\n"
    "          --max-tokens N   of a document; see --too-long\n"
    "          --merges FILE    of a vocab.json, where they do not stand beside it\n"
    "          --messages NAME  the field with the messages of a dialogue, of which a\n"
    "                           chat template makes a text; what the assistant says\n"
    "                           counts\n"
    "          --on-error HOW   a malformed record: stop (the default), or skip it\n"
    "          --pattern WORDS  of a tokenizer that is ranks alone: gpt2, cl100k,\n"
    "                           llama3, o200k, qwen, tekken, v1, v2, or a regular\n"
    "                           expression\n"
    "          --plain          names of special tokens in a text are text\n"
    "          --prompt-keeps WHAT  the start (as is usual) or the end of such a\n"
    "                           prompt\n"
    "          --reward NAME    the field that says whether a completion or dialogue\n"
    "                           is wanted, for KTO: true or above 0, false or below\n"
    "          --special TOKEN  a special token of such a tokenizer; several times:\n"
    "                           in order\n"
    "          --special-ids N  that a list of ranks keeps for them before its ranks\n"
    "          --split NAME     of a folder with several (train)\n"
    "          --template FILE  the chat template; else the one in the tokenizer's\n"
    "                           folder\n"
    "          --tokenizer PATH tokenizer.json, a SentencePiece or tiktoken file, or\n"
    "                           the folder with it\n"
    "          --too-long HOW   a document of more than --max-tokens: drop, or cut it\n"
    "          --vocab N        token ids are below N\n"
    "          --workers N      threads; one for each core\n"
    "prepare makes the datasets that a plan of nxcfg is to be trained on, of what its\n"
    "        configuration names; what is there already stays\n"
    "merge   puts the documents of several into one, in order; of one alone it makes\n"
    "        a dataset with an index of today's format. -o and --force as for build\n"
    "split   divides the documents of one, in order, by shares as 969,30,1, and\n"
    "        writes PREFIX-train, PREFIX-valid and PREFIX-test; a part of no document\n"
    "        is not written. -o and --force as for build; --pairs keeps pairs of\n"
    "        answers together\n"
    "show    prints documents, as ids\n"
    "          --bytes          as the bytes that the ids are\n"
    "          --count N        so many (10)\n"
    "          --first N        from this one on (0)\n"
    "          --lengths        instead of documents how many there are of which\n"
    "                           length\n"
    "          --pairs          of answers: which are chosen, and which rejected\n"
    "          --text           as text, by the tokenizer beside the dataset\n"
    "          --tokenizer PATH as text, by the tokenizer that made them; of which\n"
    "                           --merges, --pattern, --special and --special-ids say\n"
    "                           what build does\n"
    "          --weights        with the weight of each token's loss\n"
    "info    says what the index says\n"
    "check   reads every token: least and greatest id, lengths of documents, damage;\n"
    "          --pairs          that no answer is without the other\n"
    "merge-adapter  adds LoRA adapters, as PEFT and nxrun save them, to the weights\n"
    "        of a model (a folder, or a safetensors file), and writes the model with\n"
    "        them\n"
    "\n"
    "  --help, --version\n"
    "\n"
    "exit status: 0 done; 1 the dataset is damaged or cannot be written; 2 usage, or\n"
    "an input that cannot be read\n";

typedef struct command {
  const char *name;
  int (*run)(int n, char **arguments);
} command;

static const command commands[] = {
    {"build", nxd_command_build},     {"check", nxd_command_check}, {"info", nxd_command_info},
    {"merge", nxd_command_merge},     {"prepare", nxd_command_prepare}, {"show", nxd_command_show},
    {"split", nxd_command_split},     {"merge-adapter", nxd_command_adapter},
};

static int finish(int status) {
  if (status != STATUS_DONE) nxd_stop_die();
  if (nx_streams_arrived()) return status;
  fprintf(stderr, "nxdata: cannot write to standard output: %s\n", strerror(errno));
  return STATUS_DAMAGED;
}

int main(int n, char **arguments) {
  nx_streams_hold();
  signal(SIGXFSZ, SIG_IGN); /* a file that grows past the limit is an error like a full disk */
  nxr_mapping_guard("nxdata", 0);
  nxd_stop_guard();
  for (int i = 1; i < n && strcmp(arguments[i], "--") != 0; i++) {
    if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) {
      fputs(help, stdout);
      return finish(STATUS_DONE);
    }
    if (strcmp(arguments[i], "--version") == 0) {
      puts("nxdata " NX_VERSION);
      return finish(STATUS_DONE);
    }
  }
  if (n < 2)
    return nxd_usage("what to do? build, prepare, merge, split, show, info, check or merge-adapter", "");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(arguments[1], commands[i].name) == 0) return finish(commands[i].run(n - 2, arguments + 2));
  return nxd_usage("unknown command ", arguments[1]);
}
