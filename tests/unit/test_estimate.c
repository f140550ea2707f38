/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the systems that files are written for, against numbers made by hand; test_estimate_peer.c judges
 * them against Megatron-LM's own report. The model: 24 layers, width 2048, 16 heads, network 8192, 50304
 * words, tied: 24 * (12 * 2048^2
 * + 2 * 2048)
 * + 50304 * 2048 + 2048 = 1311082496 parameters. */
#include "tests/unit/estimate_case.h"

static const double parameters = 1311082496;

/* ---- each system by hand ---- */

typedef struct state_case {
  const char *system, *changes;
  double parameters, gradients, optimizer; /* bytes of a parameter of the model */
} state_case;

/* Eight data-parallel ranks. */
static const state_case states[] = {
    /* bf16 parameters, fp32 main gradients; fp32 parameters and two moments */
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=0", 2, 4, 12},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 4, 12.0 / 8},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=1 optimizer.name=lion", 2, 4, 8.0 / 8},
    /* moments of 8 bits, of which 256 have a scale in fp32 */
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.eight_bits=true", 2, 2 + 4,
     4 + 2 + 8.0 / 256},
    {"nx", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.eight_bits=true", 2, 4, 4 + 2 + 8.0 / 256},
    /* rules that other settings choose have states of their own */
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.amsgrad=true", 2, 2 + 4, 16},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.name=sgd", 2, 4, 4},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.name=sgd optimizer.momentum=0.9", 2, 4,
     8},
    {"megatron", MODEL "mesh.world=8 mesh.tensor=8 optimizer.zero_stage=0", 2.0 / 8, 4.0 / 8, 12.0 / 8},
    /* DeepSpeed: bf16 gradients of a micro-batch beside the fp32 sum; of ZeRO the share's fp32 gradients
     * too */
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=0", 2, 2 + 4, 12},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 2 + 4, 12.0 / 8},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=2", 2, 6.0 / 8, 16.0 / 8},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=3", 2.0 / 8, 6.0 / 8, 16.0 / 8},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.name=onebitadam", 2, 2 + 4, 16},
    /* NxDT: master weights and moments divided, and the share's gradients in fp32 */
    {"nxdt", MODEL "mesh.world=8 optimizer.zero_stage=0", 2, 4, 12},
    {"nxdt", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 4 + 4.0 / 8, 12.0 / 8},
    /* nx: what the stage of ZeRO says is divided */
    {"nx", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 4, 12.0 / 8},
    /* the update reads gradients in fp32, whatever they are summed in */
    {"nx", MODEL "mesh.world=8 optimizer.zero_stage=1 precision.grad_accumulation=bf16", 2, 2, 16.0 / 8},
    {"neox",
     MODEL "mesh.world=8 optimizer.zero_stage=1 alignment.strategy=dpo alignment.reference_model=true", 2 + 2,
     2 + 4, 12.0 / 8},
    /* nx: what answers are compared with is found out before the training, without a second model */
    {"nx", MODEL "mesh.world=8 optimizer.zero_stage=1 alignment.strategy=dpo alignment.reference_model=true",
     2, 4, 12.0 / 8},
};

static void test_state(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    estimate e = estimate_of(states[i].system, states[i].changes);
    nxc_own_memory m = first_stage(&e);
    char what[400];
    snprintf(what, sizeof what, "%s %s", states[i].system, strstr(states[i].changes, "mesh.world"));
    near_to(what, m.parts[NXC_PART_PARAMETERS], states[i].parameters * parameters, 1e-3);
    near_to(what, m.parts[NXC_PART_GRADIENTS], states[i].gradients * parameters, 1e-3);
    near_to(what, m.parts[NXC_PART_OPTIMIZER], states[i].optimizer * parameters, 1e-3);
    program_end(&e.c);
  }
}

/* FSDP2 holds fp32 shards, of eight ranks 16 bytes of a parameter in all: parameter, gradient and two
 * moments; beside them gradients of one layer, in bf16 and in the type of their reduction, before they are
 * divided. Without fp32 parameters the shards of parameters and gradients are in bf16. */
static void test_fsdp(void **unused) {
  (void)unused;
  static const char *const changes[] = {MODEL "mesh.world=8 optimizer.zero_stage=3",
                                        MODEL "mesh.world=8 optimizer.zero_stage=3 "
                                              "precision.master_weights=false"};
  for (int narrow = 0; narrow < 2; narrow++) {
    estimate e = estimate_of("xorl", changes[narrow]);
    nxc_own_memory m = first_stage(&e);
    double layer = 12.0 * 2048 * 2048 + 2 * 2048, shard = (narrow ? 2 : 4) * parameters / 8;
    near_to("parameters", m.parts[NXC_PART_PARAMETERS], shard, 1e-3);
    near_to("moments", m.parts[NXC_PART_OPTIMIZER], 8 * parameters / 8, 1e-3);
    near_to("gradients", m.parts[NXC_PART_GRADIENTS], shard + (2 + e.sizes.reduce_bytes) * layer, 1e-3);
    program_end(&e.c);
  }
}

/* Low-rank adapters: of a frozen layer h^2 * 12 there are gradients and moments of the adapters alone. */
static void test_adapters(void **unused) {
  (void)unused;
  estimate whole = estimate_of("xorl", MODEL "mesh.world=8 optimizer.zero_stage=3");
  estimate adapted = estimate_of("xorl", MODEL "mesh.world=8 optimizer.zero_stage=3 lora.rank=16");
  nxc_own_memory a = first_stage(&whole), b = first_stage(&adapted);
  assert_true(b.parts[NXC_PART_OPTIMIZER] < 0.02 * a.parts[NXC_PART_OPTIMIZER]);
  double adapters = b.parts[NXC_PART_OPTIMIZER] / 2; /* in fp32, which is half of two moments */
  near_to("frozen in bf16", b.parts[NXC_PART_PARAMETERS], a.parts[NXC_PART_PARAMETERS] / 2 + adapters, 1e-3);
  program_end(&whole.c);
  program_end(&adapted.c);
}

/* Of nf4 each weight takes half a byte, and 64 share a scale of 4 bytes; what the tables and norms hold
 * stays. */
static void test_quantized(void **unused) {
  (void)unused;
#define LORA MODEL "mesh.world=8 optimizer.zero_stage=0 lora.rank=16 "
  double layers = 24 * 12.0 * 2048 * 2048, tables = parameters - layers;
  estimate plain = estimate_of("nx", LORA), nf4 = estimate_of("nx", LORA "lora.base_type=nf4");
  nxc_own_memory a = first_stage(&plain), b = first_stage(&nf4);
  double adapters = a.parts[NXC_PART_PARAMETERS] - 2 * parameters;
  near_to("adapters", adapters, 4.0 * 24 * 16 * (4 + 2 + 5 + 5) * 2048, 0.01);
  near_to("nf4", b.parts[NXC_PART_PARAMETERS], 2 * tables + (0.5 + 4.0 / 64) * layers + adapters, 1e-3);
  program_end(&plain.c);
  program_end(&nf4.c);
}

/* What is in the host's memory is not in the device's; of layers two are on their way. */
static void test_offload(void **unused) {
  (void)unused;
#define SHARDS MODEL "mesh.world=8 optimizer.zero_stage=3 "
  estimate here = estimate_of("neox", SHARDS), half = estimate_of("neox", SHARDS "offload.optimizer=0.5");
  estimate all = estimate_of("neox", SHARDS "offload.optimizer=1 offload.parameters=true");
  nxc_own_memory a = first_stage(&here), b = first_stage(&half), c = first_stage(&all);
  near_to("half of the state", b.parts[NXC_PART_OPTIMIZER], a.parts[NXC_PART_OPTIMIZER] / 2, 1e-6);
  near_to("half of the gradients", b.parts[NXC_PART_GRADIENTS], a.parts[NXC_PART_GRADIENTS] / 2, 1e-6);
  assert_true(c.parts[NXC_PART_OPTIMIZER] + c.parts[NXC_PART_GRADIENTS] + c.parts[NXC_PART_PARAMETERS] == 0);
  program_end(&here.c);
  program_end(&half.c);
  program_end(&all.c);
#define KEPT MODEL "mesh.world=8 optimizer.zero_stage=1 attention.flash=true "
  double token = 2048.0 * 2048 * 2, layers = 24 * token; /* a tensor of the stream, and of all layers */
  estimate kept = estimate_of("megatron", KEPT),
           moved = estimate_of("megatron", KEPT "offload.activations=1");
  estimate named =
      estimate_of("megatron", KEPT "offload.activations=1 offload.modules=[attn_norm,core_attn]");
  a = first_stage(&kept), b = first_stage(&moved), c = first_stage(&named);
  double of_layers = layers * (2 + 3 + 1 + 2 + 8) + 24 * 4.0 * 2048 * 16;
  near_to("layers", a.parts[NXC_PART_ACTIVATIONS] - b.parts[NXC_PART_ACTIVATIONS], of_layers, 1e-3);
  near_to("two on their way", b.parts[NXC_PART_BUFFERS] - a.parts[NXC_PART_BUFFERS], of_layers / 12, 1e-3);
  near_to("named", a.parts[NXC_PART_ACTIVATIONS] - c.parts[NXC_PART_ACTIVATIONS], 4 * layers, 1e-3);
  program_end(&kept.c);
  program_end(&moved.c);
  program_end(&named.c);
}

/* Logits of one piece of the tokens are there at a time. */
static void test_chunks(void **unused) {
  (void)unused;
  estimate whole = estimate_of("xorl", MODEL "optimizer.zero_stage=3"),
           pieces = estimate_of("xorl", MODEL "optimizer.zero_stage=3 loss.chunks=8");
  double less =
      first_stage(&whole).parts[NXC_PART_ACTIVATIONS] - first_stage(&pieces).parts[NXC_PART_ACTIVATIONS];
  near_to("logits", less, 7.0 / 8 * 2048 * 50304 * (2 + 8), 1e-6);
  program_end(&whole.c);
  program_end(&pieces.c);
}

/* What tensor-parallel ranks do not share each has whole; what the loss makes of logits may be as narrow as
 * they. */
static void test_undivided(void **unused) {
  (void)unused;
#define FOUR MODEL "mesh.world=4 mesh.tensor=4 optimizer.zero_stage=3 "
  estimate shared = estimate_of("xorl", FOUR), whole = estimate_of("xorl", FOUR "tensor.undivided=[logits]"),
           table = estimate_of("xorl", FOUR "tensor.undivided=[embedding]"),
           narrow = estimate_of("xorl", FOUR "precision.loss=compute");
  nxc_own_memory all = first_stage(&shared);
  double logits = 2048.0 * 50304, activations = all.parts[NXC_PART_ACTIVATIONS];
  near_to("logits", first_stage(&whole).parts[NXC_PART_ACTIVATIONS] - activations, 3.0 / 4 * 10 * logits,
          1e-6);
  /* made operator by operator the loss has the gradient of its logarithm beside both */
  estimate apart = estimate_of("xorl", FOUR "kernels.separate=[loss]");
  near_to("apart", first_stage(&apart).parts[NXC_PART_ACTIVATIONS] - activations, 4 * logits / 4, 1e-6);
  estimate deepspeed = estimate_of("neox", FOUR),
           gathered = estimate_of("neox", FOUR "tensor.undivided=[logits]");
  double gathers = first_stage(&gathered).parts[NXC_PART_ACTIVATIONS] -
                   first_stage(&deepspeed).parts[NXC_PART_ACTIVATIONS];
  near_to("of DeepSpeed", gathers, (14 - 6.0 / 4) * logits, 1e-6);
  program_end(&apart.c);
  program_end(&deepspeed.c);
  program_end(&gathered.c);
  near_to("in bf16", activations - first_stage(&narrow).parts[NXC_PART_ACTIVATIONS], 4 * logits / 4, 1e-6);
  double more = first_stage(&table).parts[NXC_PART_OPTIMIZER] - all.parts[NXC_PART_OPTIMIZER];
  near_to("moments of the table", more, 3.0 / 4 * 8 * 50304 * 2048, 1e-6);
  program_end(&shared.c);
  program_end(&whole.c);
  program_end(&table.c);
  program_end(&narrow.c);
}

/* Gradients that are divided once a step are whole until then; of one micro-batch they never are. */
static void test_reduced_once(void **unused) {
  (void)unused;
#define DIVIDED MODEL "mesh.world=8 optimizer.zero_stage=3 reduce.once=true "
  estimate whole = estimate_of("nx", MODEL "mesh.world=8 batch.global=64"),
           once = estimate_of("nx", DIVIDED "batch.global=64"),
           one = estimate_of("nx", DIVIDED "batch.global=8");
  double gradients = first_stage(&whole).parts[NXC_PART_GRADIENTS];
  near_to("whole", first_stage(&once).parts[NXC_PART_GRADIENTS], gradients, 1e-6);
  assert_true(first_stage(&one).parts[NXC_PART_GRADIENTS] < 0.3 * gradients);
  program_end(&whole.c);
  program_end(&once.c);
  program_end(&one.c);
}

/* A step of FSDP2 begins without gradients: those of its only micro-batch come as activations go, whichever
 * are more; DeepSpeed's stay in their buffers. */
static void test_growing(void **unused) {
  (void)unused;
#define EIGHT MODEL "mesh.world=8 optimizer.zero_stage=3 batch.global="
#define LITTLE                                                                                               \
  MODEL "mesh.world=2 model.sequence=8 recompute.granularity=full optimizer.zero_stage=3 batch.global="
  static const struct {
    const char *system, *one, *many;
    double grows; /* 1: nothing is left of the gradients beside the activations */
  } cases[] = {{"xorl", EIGHT "8", EIGHT "64", 1},
               {"nx", EIGHT "8", EIGHT "64", 1},
               {"xorl", LITTLE "2", LITTLE "16", 0},
               {"neox", EIGHT "8", EIGHT "64", -1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    estimate one = estimate_of(cases[i].system, cases[i].one),
             many = estimate_of(cases[i].system, cases[i].many);
    nxc_own_memory begins = first_stage(&one), keeps = first_stage(&many);
    double divided = 4 * parameters / one.sizes.world, activations = keeps.parts[NXC_PART_ACTIVATIONS];
    assert_true(cases[i].grows < 0 || (divided < activations) == (cases[i].grows > 0));
    near_to(cases[i].one, keeps.total - begins.total, cases[i].grows < 0 ? 0 : fmin(divided, activations),
            1e-3);
    program_end(&one.c);
    program_end(&many.c);
  }
}

/* One rank alone has no communicators, but never less than nothing of what the machine says. */
static void test_taken(void **unused) {
  (void)unused;
  nxc_device device = {.allocator = 1.1, .reserved_bytes = 3221225472};
  near_to("many", nxc_own_taken(&device, 1e9, 8), 1.1e9 + 3221225472, 1e-9);
  near_to("alone", nxc_own_taken(&device, 1e9, 1), 1.1e9 + 1343 * 1048576.0, 1e-9);
  device.reserved_bytes = 1000;
  near_to("little", nxc_own_taken(&device, 1e9, 1), 1.1e9 + 1000, 1e-9);
}

/* Of seven products of a layer query, value, the first of the network's first two and its last are kept, and
 * the layer's input and the attention's result. */
static void test_second_products(void **unused) {
  (void)unused;
#define GATED MODEL "mesh.world=8 optimizer.zero_stage=3 model.activation=swiglu "
  estimate all = estimate_of("xorl", GATED),
           some = estimate_of("xorl", GATED "recompute.granularity=selective "
                                            "recompute.modules=[second_products]");
  double less =
      first_stage(&all).parts[NXC_PART_ACTIVATIONS] - first_stage(&some).parts[NXC_PART_ACTIVATIONS];
  double kept = 2048 + 2 * 2048 + 2048 + 8192 + 2048, whole = 5 * 2048 + 3 * 2048 + 3 * 8192;
  near_to("a layer", less, 24 * 2 * 2048.0 * (whole - kept), 1e-6);
  program_end(&all.c);
  program_end(&some.c);
}

/* A gate whose activation is an operator of its own is kept behind it too. */
static void test_separate(void **unused) {
  (void)unused;
  estimate fused = estimate_of("megatron", MODEL "model.activation=swiglu"),
           separate = estimate_of("megatron", MODEL "model.activation=swiglu kernels.separate=[activation]");
  double more =
      first_stage(&separate).parts[NXC_PART_ACTIVATIONS] - first_stage(&fused).parts[NXC_PART_ACTIVATIONS];
  near_to("gate", more, fused.sizes.layers * 2 * fused.sizes.tokens * fused.sizes.ffn, 1e-6);
  program_end(&fused.c);
  program_end(&separate.c);
}

/* Queries and keys that are normalized are kept before that, too. */
static void test_normalized(void **unused) {
  (void)unused;
  estimate plain = estimate_of("megatron", MODEL),
           normalized = estimate_of("megatron", MODEL "model.qk_norm=head");
  double more =
      first_stage(&normalized).parts[NXC_PART_ACTIVATIONS] - first_stage(&plain).parts[NXC_PART_ACTIVATIONS];
  const nxc_sizes *z = &plain.sizes;
  near_to("queries and keys", more, z->layers * 2 * z->tokens * (z->heads + z->kv_heads) * z->head_dim, 1e-6);
  program_end(&plain.c);
  program_end(&normalized.c);
}

/* Bytes of activations that a line of the report names. */
static double line_of(const estimate *e, const char *name) {
  nxc_own_memory m = first_stage(e);
  for (size_t i = 0; i < m.n_lines; i++)
    if (strcmp(m.lines[i].row->name, name) == 0) return m.lines[i].bytes;
  return 0;
}

/* Products in fp8 keep what they read in it; what activations, norms and routers read stays as it is. */
static void test_narrow_inputs(void **unused) {
  (void)unused;
#define ROUTED MODEL "mesh.world=8 moe.experts=8 moe.top_k=2 moe.ffn_hidden=4096 "
  static const struct {
    const char *model, *line;
    double fp8, fp4;
  } lines[] = {{MODEL, "input of the query, key and value product", 0.5, 0.28125},
               {MODEL, "input of the network", 0.5, 0.28125},
               {MODEL, "first product of the network", 1, 1},
               {MODEL, "result of the activation", 0.5, 0.28125},
               {MODEL, "input of the attention's norm", 1, 1},
               {MODEL "precision.fp8_backward=inputs ", "result of the activation", 1, 1},
               {ROUTED, "input of the router", 1, 1},
               {ROUTED, "rows for experts", 0.5, 0.28125},
               {ROUTED, "first product of experts", 1, 1},
               {ROUTED, "result of the experts' activation", 0.5, 0.28125}};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    char fp8[2048], fp4[2048];
    snprintf(fp8, sizeof fp8, "%sprecision.products=fp8", lines[i].model);
    snprintf(fp4, sizeof fp4, "%sprecision.products=fp4", lines[i].model);
    estimate wide = estimate_of("megatron", lines[i].model), narrow = estimate_of("megatron", fp8),
             narrowest = estimate_of("megatron", fp4);
    double bytes = line_of(&wide, lines[i].line);
    assert_true(bytes > 0);
    near_to(lines[i].line, line_of(&narrow, lines[i].line), lines[i].fp8 * bytes, 1e-9);
    near_to(lines[i].line, line_of(&narrowest, lines[i].line), lines[i].fp4 * bytes, 1e-9);
    program_end(&wide.c);
    program_end(&narrow.c);
    program_end(&narrowest.c);
  }
}

/* A product with a frozen matrix keeps nothing of what it reads; one with an adapter does, in its own type.
 */
static void test_kept_for_adapters(void **unused) {
  (void)unused;
  static const struct {
    const char *modules, *line;
    bool kept;
  } lines[] = {{"", "input of the network", true},
               {" lora.modules=[q_proj,v_proj]", "input of the query, key and value product", true},
               {" lora.modules=[q_proj,v_proj]", "input of the network", false},
               {" lora.modules=[q_proj,v_proj]", "result of the activation", false},
               {" lora.modules=[q_proj,v_proj]", "first product of the network", true},
               {" lora.modules=[up_proj]", "input of the network", true},
               {" lora.modules=[down_proj]", "input of the query, key and value product", false},
               {" lora.modules=[down_proj]", "result of the activation", true}};
  static const char *const systems[] = {"megatron", "xorl", "nx", "nxdt"};
  estimate plain = estimate_of("megatron", MODEL);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    for (size_t k = 0; k < sizeof systems / sizeof *systems; k++) {
      char changes[2048];
      snprintf(changes, sizeof changes, "%sprecision.products=fp8 lora.rank=8%s", MODEL, lines[i].modules);
      estimate adapted = estimate_of(systems[k], changes);
      double wanted = lines[i].kept ? line_of(&plain, lines[i].line) : 0;
      near_to(lines[i].line, line_of(&adapted, lines[i].line), wanted, 1e-9);
      program_end(&adapted.c);
    }
  program_end(&plain.c);
}

/* Megatron keeps the rows that experts read, once, and not what they make: a second expert of a token adds no
 * more. */
static void test_rows_of_experts(void **unused) {
  (void)unused;
  estimate e = estimate_of("megatron", ROUTED);
  double rows = 2 * 2048, layers = 24;
  near_to("rows", line_of(&e, "rows for experts"), layers * 2 * rows * 2048, 1e-9);
  near_to("on their way", line_of(&e, "rows on their way to experts and back"), 2 * 2 * rows * 2048, 1e-9);
  assert_true(line_of(&e, "output of experts") == 0);
  program_end(&e.c);
  /* a policy that keeps products keeps none that are grouped: those of one layer are there again */
  e = estimate_of("xorl", ROUTED "model.activation=swiglu recompute.granularity=selective "
                                 "recompute.modules=[second_products]");
  assert_true(line_of(&e, "rows for experts") == 0 && line_of(&e, "first product of experts") == 0);
  near_to("again", line_of(&e, "experts that are computed again"), 2 * rows * 3 * (2048 + e.sizes.expert_ffn),
          1e-9);
  program_end(&e.c);
}

/* DeepSeek-V2's attention, of its paper (arXiv:2405.04434): hidden 5120, 128 heads of 128 + 64, values 128,
 * ranks 1536 and 512. Down 5120 * (1536 + 512 + 64), up 1536 * 128 * 192 and 512 * 128 * 256, out 128 * 128 *
 * 5120. */
static void test_latent(void **unused) {
  (void)unused;
  estimate e =
      estimate_of("megatron", "model.hidden=5120 model.heads=128 model.kv_heads=128 model.head_dim=192 "
                              "model.value_dim=128 model.latent_rank=512 model.latent_query_rank=1536 "
                              "model.latent_rope_dim=64");
  double wanted = 5120.0 * (1536 + 512 + 64) + 1536.0 * 128 * 192 + 512.0 * 128 * 256 + 128.0 * 128 * 5120;
  assert_true(e.sizes.attention == wanted);
  program_end(&e.c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_state),           cmocka_unit_test(test_fsdp),
      cmocka_unit_test(test_adapters),        cmocka_unit_test(test_quantized),
      cmocka_unit_test(test_chunks),          cmocka_unit_test(test_undivided),
      cmocka_unit_test(test_second_products), cmocka_unit_test(test_reduced_once),
      cmocka_unit_test(test_growing),         cmocka_unit_test(test_taken),
      cmocka_unit_test(test_separate),        cmocka_unit_test(test_offload),
      cmocka_unit_test(test_narrow_inputs),   cmocka_unit_test(test_kept_for_adapters),
      cmocka_unit_test(test_rows_of_experts), cmocka_unit_test(test_latent),
      cmocka_unit_test(test_normalized),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
