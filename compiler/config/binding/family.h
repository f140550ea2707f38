/* SPDX-License-Identifier: Apache-2.0 */
/* What a config.json means by the family of models that it is of (compiler/settings/family.h). */
#ifndef NXC_BINDING_FAMILY_H
#define NXC_BINDING_FAMILY_H

#include "compiler/config/binding/dialect.h"
#include "compiler/settings/family.h"

/* The key whose value names the family. */
nxc_bound *nxc_binding_family_key(const nxc_binding *binding);
/* Keys under their common names, and the family's defaults for those that are not given. NULL: the file names
 * no family that is known, and keys mean what Llama's do. */
const nxc_family *nxc_binding_read_family(const nxc_binding *binding);
/* An option that sets what the family's code fixes. */
const nxc_bound *nxc_binding_family_option(const nxc_binding *binding, const nxc_family *family);

#endif
