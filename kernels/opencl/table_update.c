/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules of this backend: those of elements have one program each, those of tensors several
 * kernels. */
#include "kernels/opencl/opencl.h"

#include "schema/dynamic8.h"
#include "schema/optimizers.h"

#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* that ask for vectors */
typedef double real;
#include "kernels/rules/muon.h"

/* ---- elements ---- */

/* Elements that an item updates. */
enum { UPDATE_ELEMENTS = 32 };

static uint64_t update_groups(const nxk_device *device, const nxk_operator *operator) {
  return ocl_ceil((uint64_t)ocl_elements(operator, 0), (uint64_t)device->local * UPDATE_ELEMENTS);
}

static void update_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  static const char *const names[] = {"GRADIENT", "LR", "DECAY", "SCALE", "STEP"};
  uint32_t n_states = nx_optimizer_n_states(nx_optimizer_of(operator->op));
#define NUMBER(rule, index, name, type, meaning) fprintf(text, "#define NX_%s_%s %d\n", #rule, #name, index);
#include "schema/optimizers.def"
  fprintf(text, "#define RULE rule_%s\n#define N_STATES %u\n", nx_op_find(operator->op)->name, n_states);
  fprintf(text, "#define UPDATE_TURNS %u\n#define GRADIENT_WIDE X%u_WIDE\n", UPDATE_ELEMENTS / device->width,
          1 + n_states + NX_UPDATE_GRADIENT);
  for (uint32_t i = 0; i < NX_UPDATE_END; i++) fprintf(text, "#define %s X%u\n", names[i], 1 + n_states + i);
  if (operator->n_out <= 1 + n_states) return;
  fprintf(text, "#define SET_COPY SET_Y%u\n#define SET_COPY_BITS SET_Y%u_BITS\n#define TYPE_COPY TYPE_Y%u\n",
          1 + n_states, 1 + n_states, 1 + n_states);
}

/* ---- whole tensors ---- */

/* Their numbers begin alike. */
static bool is_muon(const nxk_operator *operator) {
  return operator->op == NX_OP_muon || operator->op == NX_OP_adaptive_muon;
}

/* The first input of the tensor as a whole. */
static uint32_t whole_input(const nxk_operator *operator) {
  uint32_t n_states = nx_optimizer_n_states(nx_optimizer_of(operator->op));
  return operator->n_in > 1 + n_states + NX_UPDATE_END ? 1 + n_states + NX_UPDATE_END : 0;
}

static void tensor_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  uint32_t n_states = nx_optimizer_n_states(nx_optimizer_of(operator->op)), whole = whole_input(operator);
  update_define(text, device, operator);
  if (whole) fprintf(text, "#define PARTED\n#undef GRADIENT\n#define GRADIENT X%u\n", whole + 1 + n_states);
  fprintf(text, "#define COLUMNS XDIM(%u, 3)\n#define P X%u\n", whole, whole);
  for (uint32_t i = 0; i < n_states; i++) fprintf(text, "#define STATE_%u X%u\n", i, whole + 1 + i);
  if (!is_muon(operator)) return;
  fprintf(text, "constant double muon_coefficients[] = {");
  for (int64_t i = 0; i < 3 * operator->attrs[NX_muon_ns_steps].integer; i++)
    fprintf(text, "%a, ",
            rule_muon_coefficients(operator->attrs[NX_muon_ns_coefficients].integer, i / 3)[i % 3]);
  fputs("};\n", text);
}

static int64_t whole_rows(const nxk_operator *operator) {
  return operator->args[whole_input(operator)].dims[0];
}

static int64_t whole_columns(const nxk_operator *operator) {
  return operator->args[whole_input(operator)].dims[1];
}

static uint64_t whole_items(const nxk_device *device, const nxk_operator *operator) {
  return ocl_ceil((uint64_t)(whole_rows(operator) * whole_columns(operator)), device->local);
}

static uint64_t whole_row_groups(const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  return (uint64_t)whole_rows(operator);
}

static uint64_t whole_column_items(const nxk_device *device, const nxk_operator *operator) {
  return ocl_ceil((uint64_t)whole_columns(operator), device->local);
}

/* An item for each block of moments. */
static uint64_t block_items(const nxk_device *device, const nxk_operator *operator) {
  uint64_t n = (uint64_t)(whole_rows(operator) * whole_columns(operator));
  return ocl_ceil(ocl_ceil(n, NX_DYNAMIC8_BLOCK), device->local);
}

static uint64_t muon_parts(const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  return (uint64_t)operator->attrs[NX_muon_column_parts].integer;
}

/* Of all parts: of squares, and of parts themselves. */
static uint64_t muon_square_tiles(const nxk_device *device, const nxk_operator *operator) {
  uint64_t n_parts = muon_parts(device, operator);
  int64_t rows = whole_rows(operator), width = whole_columns(operator) / (int64_t)n_parts,
          least = rows < width ? rows : width;
  return n_parts * ocl_tiles(device, least, least);
}

static uint64_t muon_tiles(const nxk_device *device, const nxk_operator *operator) {
  uint64_t n_parts = muon_parts(device, operator);
  int64_t rows = whole_rows(operator), width = whole_columns(operator) / (int64_t)n_parts;
  return n_parts * ocl_tiles(device, rows < width ? rows : width, rows < width ? width : rows);
}

/* An item for each row or column, whichever there are more of. */
static uint64_t muon_longer_items(const nxk_device *device, const nxk_operator *operator) {
  int64_t rows = whole_rows(operator), columns = whole_columns(operator);
  return ocl_ceil((uint64_t)(rows > columns ? rows : columns), device->local);
}

static uint32_t muon_rounds(const nxk_operator *operator) {
  return (uint32_t)operator->attrs[NX_muon_ns_steps].integer;
}

#define STEP_FIRST                                                                                           \
  { "update_step", OCL_ONE, 0, 0, NULL, false }
#define WHOLE(kernel)                                                                                        \
  { kernel, OCL_COUNTED, 0, 0, whole_items, false }
#define COPY_LAST(n_outputs)                                                                                 \
  { "update_copy", OCL_ITEMS, OCL_OUT(0), n_outputs, NULL, false }
#define SM3(n_outputs)                                                                                       \
  {                                                                                                          \
    "sm3",                                                                                                   \
        {STEP_FIRST,                                                                                         \
         {"sm3_rows", OCL_COUNTED, 0, 0, whole_row_groups, false},                                           \
         {"sm3_columns", OCL_COUNTED, 0, 0, whole_column_items, false},                                      \
         WHOLE("sm3_store"),                                                                                 \
         COPY_LAST(n_outputs)},                                                                              \
        tensor_define, NULL                                                                                  \
  }

#define ORTHOGONAL                                                                                           \
  STEP_FIRST, WHOLE("muon_direction"), {"muon_norm", OCL_COUNTED, 0, 0, muon_parts, false},                  \
      WHOLE("muon_divide"), {"muon_square", OCL_COUNTED, 0, 0, muon_square_tiles, true},                     \
      {"muon_mix", OCL_COUNTED, 0, 0, muon_square_tiles, true}, {                                            \
    "muon_apply", OCL_COUNTED, 0, 0, muon_tiles, true                                                        \
  }
static const ocl_row muon_row = {
    "muon", {ORTHOGONAL, WHOLE("muon_store"), COPY_LAST(3)}, tensor_define, muon_rounds};
static const ocl_row adaptive_muon_row = {"muon",
                                          {ORTHOGONAL,
                                           {"muon_sums", OCL_COUNTED, 0, 0, muon_longer_items, false},
                                           {"muon_kept", OCL_ONE, 0, 0, NULL, false},
                                           WHOLE("muon_store"),
                                           COPY_LAST(4)},
                                          tensor_define,
                                          muon_rounds};
static const ocl_row novograd_row = {"novograd",
                                     {STEP_FIRST,
                                      {"novograd_norm", OCL_ONE, 0, 0, NULL, false},
                                      WHOLE("novograd_moment"),
                                      {"novograd_rate", OCL_ONE, 0, 0, NULL, false},
                                      WHOLE("novograd_store"),
                                      COPY_LAST(4)},
                                     tensor_define,
                                     NULL};
static const ocl_row sm3_row = SM3(3), sm3_momentum_row = SM3(4);
#define ADAFACTOR(n_outputs)                                                                                 \
  {                                                                                                          \
    "adafactor",                                                                                             \
        {STEP_FIRST,                                                                                         \
         WHOLE("adafactor_moment"),                                                                          \
         {"adafactor_rows", OCL_COUNTED, 0, 0, whole_row_groups, false},                                     \
         {"adafactor_columns", OCL_COUNTED, 0, 0, whole_column_items, false},                                \
         {"adafactor_rate", OCL_ONE, 0, 0, NULL, false},                                                     \
         WHOLE("adafactor_store"),                                                                           \
         COPY_LAST(n_outputs)},                                                                              \
        tensor_define, NULL                                                                                  \
  }
static const ocl_row adafactor_row = ADAFACTOR(3), adafactor_momentum_row = ADAFACTOR(4);

static const ocl_row adamw_8bit_row = {"adamw_8bit",
                                       {STEP_FIRST,
                                        {"adamw_8bit_blocks", OCL_COUNTED, 0, 0, block_items, false},
                                        WHOLE("adamw_8bit_store"),
                                        COPY_LAST(4)},
                                       tensor_define,
                                       NULL};

static const ocl_row soap_row = {
    "soap", {STEP_FIRST, {"soap_step", OCL_ONE, 0, 0, NULL, false}, COPY_LAST(6)}, tensor_define, NULL};

static const ocl_row element_row = {
    "update", {STEP_FIRST, {"update", OCL_COUNTED, 0, 0, update_groups, false}}, update_define, NULL};

const ocl_row *ocl_update_row(nx_op op) {
  switch (op) {
  case NX_OP_muon: return &muon_row;
  case NX_OP_adaptive_muon: return &adaptive_muon_row;
  case NX_OP_soap: return &soap_row;
  case NX_OP_novograd: return &novograd_row;
  case NX_OP_sm3: return &sm3_row;
  case NX_OP_sm3_momentum: return &sm3_momentum_row;
  case NX_OP_adafactor: return &adafactor_row;
  case NX_OP_adafactor_momentum: return &adafactor_momentum_row;
  case NX_OP_adamw_8bit: return &adamw_8bit_row;
  default: return nx_optimizer_of(op)->kind == NX_ELEMENT ? &element_row : NULL;
  }
}
