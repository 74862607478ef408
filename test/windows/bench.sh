#!/usr/bin/env bash
# Measures the real proxy.exe under Wine, over named pipes, against a bare gRPC server (test/bench/node).
#
#   test/windows/bench.sh [-quick] [-only TEXT]
#
# Needs what test/windows/run.sh needs, and the Wine prefix that a run of it has left in build/wine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

wine=$(command -v wine64 || command -v /usr/lib/wine/wine64 || command -v wine)
wineserver=$(command -v wineserver || command -v /usr/lib/wine/wineserver)
out=$PWD/build/wine
if [[ ! -e $out/prefix/drive_c/windows/system32/bcryptprimitives.dll ]]; then
	echo "test/windows/bench.sh: run test/windows/run.sh first: it makes the Wine prefix" >&2
	exit 1
fi
exec 9>"$out/lock"
flock 9 # one run at a time in one prefix
export WINEPREFIX=$out/prefix WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' DISPLAY=
trap '"$wineserver" -k 9>&- || true' EXIT
"$wineserver" -k 9>&- || true
"$wineserver" -w 9>&-
"$wineserver" -p 9>&-

mkdir -p "$out/bench"
# The invented machine, which the program of nodes does not have, is what the calls are about.
GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build -trimpath -tags fakehost,grpcnotrace -ldflags '-s -w' -o "$out/bench/" ./cmd/proxy ./test/bench/node
windows_path() { # of a Unix path: Wine shows / as drive Z
	echo "Z:${1//\//\\}"
}
"$wine" "$out/bench/node.exe" -proxy "$(windows_path "$out/bench/proxy.exe")" "$@" 9>&-
