# What estimates say of themselves: the lines of a table of memory add up to its last, and shares of the time to 100 %,
# less what is left out as too little. A line for each thing that does not hold, and at the end how many tables there were.
function add_up(column, digits) {
  tolerance = 0.5 * digits * (n_rows + 1)
  if (sum[column] - total[column] > tolerance || total[column] - sum[column] > tolerance)
    print FILENAME ": " table ": " sum[column] " in column " column ", not " total[column]
}
/^memory of |^time of / {
  table = $1
  n_rows = sum[1] = sum[2] = shares = 0
  next
}
table == "memory" && / GiB/ {
  line = $0; sub(/^ *[^0-9-]*  +/, "", line)
  n_columns = split(line, cells, /  +/)
  last = $0 ~ /^  in all /
  for (i = 1; i <= n_columns; i++) if (last) total[i] = cells[i] + 0; else sum[i] += cells[i] + 0
  n_rows += !last
  if (!last) next
  for (i = 1; i <= n_columns; i++) add_up(i, 0.001)
  n_tables++
  table = ""
}
table == "time" && / s +[0-9.]+ % / {
  for (i = 1; i <= NF; i++) if ($i == "%") shares += $(i - 1)
  n_rows++
}
table == "time" && /^  in all / {
  if (shares - 100 > 0.05 * (n_rows + 1) || shares < 98) print FILENAME ": shares of the time add up to " shares " %"
  n_tables++
  table = ""
}
END { print n_tables + 0 " tables" }
