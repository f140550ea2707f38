# Writes each block ```console of a document to the file BLOCKS NUMBER: a line with its place and how it is marked, then
# the block. Prints commands that stand elsewhere, where no test runs them. Variable: blocks.
# SPDX-License-Identifier: Apache-2.0
/^<!-- .* -->$/ { mark = $0; next }
!inside && /^```/ {
  inside = 1
  run = /^```console/
  excused = mark ~ /not run:/
  if (run) {
    file = sprintf("%s%03d", blocks, ++n)
    print NR " " mark >file
  }
  next
}
inside && /^```/ { inside = run = excused = 0; mark = ""; next }
run { print >file; next }
(inside || /^    /) && !excused && mark !~ /not run:/ && /^ *(\$ )?(build\/|sudo |mpiexec -n [0-9]+ )*(nxcfg|nxdata|nxrun|tools\/[a-z]+|tests\/[a-z]+\/[a-z_]+|pip|meson|ninja)( |$)/ {
  print "line " NR ": no test runs this: " $0
}
/[^ ]/ && !/^    / && !inside { mark = "" }
