/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int nxd_usage(const char *what, const char *which) {
  fprintf(stderr, "nxdata: %s%s (see nxdata --help)\n", what, which);
  return STATUS_USAGE;
}

static bool complain(const char *what, const char *which) {
  nxd_usage(what, which);
  return false;
}

/* Length of the option's name in an argument, as --name=value has it; 0 where it is another option's. */
static size_t match(const nxd_option *option, const char *argument) {
  size_t length = strlen(option->name);
  if (strncmp(argument, option->name, length) != 0) return 0;
  bool with_value = length > 2 && option->kind != NXD_FLAG && argument[length] == '=';
  return argument[length] == '\0' || with_value ? length : 0;
}

static bool read_number(const nxd_option *option, const char *text) {
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (option->kind == NXD_NUMBER) *(uint64_t *)option->value = number;
  else if (number > UINT32_MAX) errno = ERANGE;
  else *(uint32_t *)option->value = (uint32_t)number;
  if (errno == 0 && end != text && *end == '\0' && text[0] >= '0' && text[0] <= '9') return true;
  fprintf(stderr, "nxdata: %s takes %s, not %s\n", option->name, option->wants, text);
  return false;
}

static bool read_choice(const nxd_option *option, const char *text) {
  size_t length = strlen(text);
  int which = 0;
  for (const char *at = option->wants; *at != '\0'; which++) {
    size_t n = strcspn(at, "|");
    if (n == length && memcmp(at, text, n) == 0) {
      *(int *)option->value = which;
      return true;
    }
    at += n + (at[n] == '|');
  }
  fprintf(stderr, "nxdata: %s takes %s, not %s\n", option->name, option->wants, text);
  return false;
}

static bool add_text(nxd_texts *texts, const char *text) {
  const char **items = realloc(texts->items, (texts->n + 2) * sizeof *items);
  if (items == NULL) return complain("out of memory", "");
  items[texts->n++] = text;
  items[texts->n] = NULL;
  texts->items = items;
  return true;
}

static bool read_value(const nxd_option *option, const char *text) {
  if (option->kind == NXD_NUMBER || option->kind == NXD_COUNT) return read_number(option, text);
  if (option->kind == NXD_CHOICE) return read_choice(option, text);
  if (option->kind == NXD_TEXTS) return add_text(option->value, text);
  const char **value = option->value;
  if (*value != NULL) return complain(option->name, " is given twice");
  *value = text;
  return true;
}

/* Reads the option at arguments[*at], and its value. */
static bool read_option(int n, char **arguments, int *at, const nxd_option *options, size_t n_options) {
  const char *argument = arguments[*at];
  for (size_t i = 0; i < n_options; i++) {
    const nxd_option *option = &options[i];
    size_t length = match(option, argument);
    if (length == 0) continue;
    if (option->kind == NXD_FLAG) {
      *(bool *)option->value = true;
      return true;
    }
    if (argument[length] == '=') return read_value(option, argument + length + 1);
    if (++*at < n) return read_value(option, arguments[*at]);
    fprintf(stderr, "nxdata: %s needs %s (see nxdata --help)\n", option->name, option->wants);
    return false;
  }
  return complain("unknown option ", argument);
}

bool nxd_options_read(int *n, char **arguments, const nxd_option *options, size_t n_options) {
  int n_operands = 0;
  bool only_operands = false;
  for (int i = 0; i < *n; i++) {
    if (only_operands || arguments[i][0] != '-' || arguments[i][1] == '\0')
      arguments[n_operands++] = arguments[i];
    else if (strcmp(arguments[i], "--") == 0) only_operands = true;
    else if (!read_option(*n, arguments, &i, options, n_options)) return false;
  }
  *n = n_operands;
  return true;
}
