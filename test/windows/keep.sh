#!/usr/bin/env bash
# Keeps a test binary instead of running it: run.sh gives it to "go test -exec", which calls it in the package's directory.
set -euo pipefail
package=${PWD#"$ROOT/"}
cp "$1" "$OUT/bin/${package//\//_}.test.exe"
