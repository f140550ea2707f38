# What a list of operators says of itself: each program's number of operators and its FLOP and bytes are those of its
# lines, and a product of an m x k and a k x n matrix takes 2 m n k FLOP. A line for each thing that does not hold.
function number(text) {
  return (text + 0) * (text ~ / k/ ? 1e3 : text ~ / M/ ? 1e6 : 1)
}
function differ(a, b) { # numbers are printed with three digits
  return a - b > 0.01 * b || b - a > 0.01 * b
}
function end_operator() {
  if (operator == "matmul" && differ(flop, 2 * sqrt(elements[1] * elements[2] * elements[3])))
    print program ", operator " place ": " flop " FLOP of a product of " elements[2] " and " elements[3] " elements"
  operator = ""
}
function end_program() {
  end_operator()
  if (program == "") return
  if (n != wanted_n) print program ": " n " operators, not " wanted_n
  if (differ(all_flop, wanted_flop)) print program ": " all_flop " FLOP, not " wanted_flop
  if (differ(all_bytes, wanted_bytes)) print program ": " all_bytes " bytes, not " wanted_bytes
}
/^program / {
  end_program()
  split($0, parts, /[:,] */)
  program = parts[1]; wanted_n = parts[2] + 0; wanted_flop = number(parts[3]); wanted_bytes = number(parts[4])
  n = all_flop = all_bytes = 0
  n_programs++
}
/^ +[0-9]+ [f-][m-][l-] / {
  end_operator()
  n++; place = $1; operator = $3; n_args = flop = 0
  inside = $0; sub(/.*\[/, "", inside)
  n_costs = split(inside, costs, /; */)
  for (i = 2; i <= n_costs; i++) {
    if (costs[i] ~ /FLOP/) all_flop += flop = number(costs[i])
    else all_bytes += number(costs[i])
  }
}
/^ +(->|<-)? *[^ ]+:[a-z0-9]+\[[0-9,]*\]@/ {
  shape = $0; sub(/.*:[a-z0-9]+\[/, "", shape); sub(/\]@.*/, "", shape)
  n_dims = split(shape, dims, ",")
  elements[++n_args] = 1
  for (i = 1; i <= n_dims; i++) elements[n_args] *= dims[i]
}
END {
  end_program()
  if (n_programs != 4) print n_programs + 0 " programs, not 4"
}
