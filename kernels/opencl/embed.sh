#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh ROOT OUTPUT FILE...: OpenCL C as C arrays, each with the headers that it includes. What those include
# themselves is not there for a device, and the program says it in its own way before. Tables of a file are constants of
# the device, those of a function its own.
set -e
root=$1
output=$2
shift 2
with_headers() {
  while IFS= read -r line; do
    case $line in
    '#include "'*)
      header=$root/${line#*\"}
      case $header in
      *.cl\") with_headers <"${header%\"}" ;;
      *) sed '/^#include/d; s/^static const /constant /; s/^\(  *\)static const /\1const /' "${header%\"}" ;;
      esac
      ;;
    *) printf '%s\n' "$line" ;;
    esac
  done
}
{
  echo '#include "kernels/opencl/opencl.h"'
  echo '#include <string.h>'
  for file in "$@"; do
    echo "static const unsigned char text_$(basename "$file" .cl)[] = {"
    with_headers <"$file" | od -v -An -tu1 | sed 's/\([0-9]\)  *\([0-9]\)/\1,\2/g; s/\([0-9]\)  *\([0-9]\)/\1,\2/g; s/$/,/'
    echo '0};'
  done
  echo 'static const struct { const char *name; const unsigned char *text; } files[] = {'
  for file in "$@"; do
    name=$(basename "$file" .cl)
    echo "{\"$name\", text_$name},"
  done
  echo '};'
  echo 'const char *ocl_source(const char *file) {'
  echo '  for (size_t i = 0; i < sizeof files / sizeof *files; i++)'
  echo '    if (strcmp(files[i].name, file) == 0) return (const char *)files[i].text;'
  echo '  return NULL;'
  echo '}'
} >"$output"
