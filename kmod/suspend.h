/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ADIT_SUSPEND_H
#define _ADIT_SUSPEND_H

int adit_suspend_init(void);
void adit_suspend_exit(void);

#endif
