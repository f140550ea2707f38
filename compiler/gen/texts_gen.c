/* SPDX-License-Identifier: Apache-2.0 */
/* Writes files as C texts, one row a file, named without folder and ending: texts_gen HEADER TYPE ARRAY
 * FILE... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_text(FILE *in) {
  fputs("\"", stdout);
  for (int c; (c = getc(in)) != EOF;) {
    if (c == '\n') fputs("\\n\"\n   \"", stdout);
    else if (c == '"' || c == '\\') printf("\\%c", c);
    else putchar(c);
  }
  fputs("\"", stdout);
}

int main(int argc, char **argv) {
  if (argc < 5) return EXIT_FAILURE;
  puts("/* SPDX-License-Identifier: Apache-2.0 */");
  puts("/* Made from texts by compiler/gen; do not edit. */");
  printf("#include \"%s\"\n\nconst %s %s[] = {\n", argv[1], argv[2], argv[3]);
  for (int i = 4; i < argc; i++) {
    const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
    FILE *in = fopen(argv[i], "r");
    if (in == NULL) {
      perror(argv[i]);
      return EXIT_FAILURE;
    }
    printf("  {\"%.*s\",\n   ", (int)strcspn(name, "."), name);
    print_text(in);
    fputs("},\n", stdout);
    fclose(in);
  }
  printf("};\nconst size_t %s_n = sizeof %s / sizeof *%s;\n", argv[3], argv[3], argv[3]);
  return EXIT_SUCCESS;
}
