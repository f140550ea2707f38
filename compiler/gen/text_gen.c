/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a constant of C: text_gen NAME FILE prints `const char NAME[]`, which ends with 0. */
#include <stdio.h>

int main(int argc, char **argv) {
  FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  if (file == NULL) return fprintf(stderr, "usage: text_gen NAME FILE\n"), 1;
  printf("extern const char %s[];\nconst char %s[] = {", argv[1], argv[1]);
  for (int byte, n = 0; (byte = getc(file)) != EOF; n++) printf(n % 24 ? "%d," : "\n%d,", (signed char)byte);
  printf("\n0};\n");
  return fclose(file) == 0 ? 0 : 1;
}
