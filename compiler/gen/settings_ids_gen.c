/* SPDX-License-Identifier: Apache-2.0 */
/* Writes settings_ids.gen.h: one number per setting, in the order of schema/settings.yaml. */
#include "compiler/gen/rows.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  gen_file file;
  if (argc != 2 || !gen_file_read(&file, GEN_SETTINGS, argv[1])) return EXIT_FAILURE;
  puts("/* SPDX-License-Identifier: Apache-2.0 */");
  puts("/* Made from schema/settings.yaml by compiler/gen; do not edit. */");
  puts("#ifndef NX_SETTINGS_IDS_GEN_H\n#define NX_SETTINGS_IDS_GEN_H\n\ntypedef enum nxc_setting_id {");
  const gen_setting *rows = file.rows;
  for (unsigned i = 0; i < file.n_rows; i++) {
    if (rows[i].setting == NULL) {
      fprintf(stderr, "%s: row %u has no name\n", argv[1], i + 1);
      return EXIT_FAILURE;
    }
    printf("  NX_SETTING_");
    for (const char *at = rows[i].setting; *at != '\0'; at++)
      putchar(*at == '.' ? '_' : toupper((unsigned char)*at));
    puts(",");
  }
  puts("  NX_N_SETTINGS\n} nxc_setting_id;\n\n#endif");
  return EXIT_SUCCESS;
}
