# Lines of the second file (what a document shows) must be those of the first (what was printed), in order; a line `...`
# stands for any lines, `...` at the end of a line for any text. Prints what is wrong.
# SPDX-License-Identifier: Apache-2.0
NR == FNR { printed[++n_printed] = $0; next }
$0 == "..." { gap = 1; next }
{
  want = $0
  open = sub(/\.\.\.$/, "", want)
  for (found = 0; at < n_printed && !found;) {
    at++
    found = open ? index(printed[at], want) == 1 : printed[at] == want
    if (!found && !gap) break
  }
  if (!found) {
    print "shown is: " $0
    print gap ? "which is not printed after: " printed[last] : "printed is: " printed[at]
    exit
  }
  last = at
  gap = 0
}
END { if (!gap && at < n_printed && (found || FNR == NR)) print "no more is shown, but there is: " printed[at + 1] }
