// SPDX-License-Identifier: GPL-2.0
#include <crypto/utils.h>
