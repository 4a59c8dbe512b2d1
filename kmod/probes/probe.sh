#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probe.sh OUTPUT DIRECTORY COMPILER FLAGS...
#
# Compiles each snippet of DIRECTORY. "name.c" that compiles gives "#define ADIT_HAVE_NAME 1".
set -eu

output=$1
directory=$2
shift 2

{
	echo "/* SPDX-License-Identifier: GPL-2.0 */"
	echo "/* Made by probes/probe.sh. */"
	for snippet in "$directory"/*.c; do
		name=$(basename "$snippet" .c | tr '[:lower:]' '[:upper:]')
		if "$@" -Wno-error -Werror=implicit-function-declaration \
			-Werror=incompatible-pointer-types -Werror=int-conversion \
			-fsyntax-only "$snippet" 2>"$output.log"; then
			echo "#define ADIT_HAVE_$name 1"
		else
			echo "/* ADIT_HAVE_$name is not set */"
		fi
	done
} >"$output.new"
mv "$output.new" "$output"
rm -f "$output.log"
