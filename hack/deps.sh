#!/usr/bin/env bash
# Sees to it that what the tests need beside Go is there: a C compiler for the race detector; Wine and a C compiler for
# Windows for the Windows tests. On Debian, as root, it installs what is missing; elsewhere it says what to install,
# and fails only if CI=true.
set -euo pipefail

declare -A package=(
	[gcc]='gcc libc6-dev'
	[wine]='wine wine64'
	[x86_64-w64-mingw32-gcc]=gcc-mingw-w64-x86-64-win32
)
missing=()
for tool in gcc wine x86_64-w64-mingw32-gcc; do
	if ! command -v "$tool" >/dev/null; then
		read -ra names <<<"${package[$tool]}"
		missing+=("${names[@]}")
	fi
done
if ((${#missing[@]} == 0)); then
	exit 0
fi
if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
	echo "installing ${missing[*]}" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
	exit 0
fi
echo "MISSING: ${missing[*]}: some tests will not run. On Debian: apt-get install ${missing[*]}" >&2
if [[ ${CI:-} == true ]]; then
	exit 1
fi
