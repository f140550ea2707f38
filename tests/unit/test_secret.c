/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken for a secret, and what only looks like one. */
#include "compiler/diagnostics/secret.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static const char *const secrets[] = {
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "a hf_Zq7hidden0123456789 in it",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11ABCDEFG0_abcdefghijklmnop",
    "glpat-x_Y-0123456789abcdef",
    "sk-proj-ab_cd-0123456789",
    "AKIA0123456789ABCDEF",
    "https://me:hidden@host/x",
    "https://host/x?a=1&token=hidden",
};

static const char *const plain[] = {
    "hf_llama3_8B_SFT--{step}-{consumed_samples}",
    "hf_llama3.1_405B_trn1_config.yaml",
    "hf_mixtral_8x7b_dropless_config",
    "hf_",
    "AKIA",
    "ghs_of_layers_0_to_31",
    "https://host:8080/x",
};

static void finds_secrets(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
    if (!nxc_text_is_secret(secrets[i], strlen(secrets[i]))) fail_msg("%s is no secret", secrets[i]);
}

static void leaves_names(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (nxc_text_is_secret(plain[i], strlen(plain[i]))) fail_msg("%s is a secret", plain[i]);
}

/* Nothing behind the end is read: an array of exactly the text's bytes, of each length. */
static void ends_where_it_ends(void **state) {
  (void)state;
  for (size_t n = 0; n <= strlen(secrets[0]); n++) {
    char *text = test_malloc(n + 1);
    memcpy(text, secrets[0], n);
    text[n] = '7';
    assert_int_equal(nxc_text_is_secret(text, n), n >= strlen("hf_AbCdEfGhIjKlMnOpQrStUvWxYz0"));
    test_free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(finds_secrets), cmocka_unit_test(leaves_names),
                                     cmocka_unit_test(ends_where_it_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
