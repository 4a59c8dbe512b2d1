/* SPDX-License-Identifier: GPL-2.0 */
/*
 * At load; the module refuses to be loaded when one fails. Each says what was wrong.
 */
#ifndef _ADIT_SELFTEST_H
#define _ADIT_SELFTEST_H

#include <linux/types.h>

bool adit_selftest(void);
bool adit_selftest_replay(void);
bool adit_selftest_allowedips(void);
bool adit_selftest_aead(void);

#endif
