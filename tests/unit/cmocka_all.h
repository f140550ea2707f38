/* SPDX-License-Identifier: Apache-2.0 */
/* CMocka with the headers that it wants first. */
#ifndef NX_TESTS_CMOCKA_ALL_H
#define NX_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#endif
