#!/usr/bin/env bash
# Sees to it that what the tests need beside Go is there. On Debian, as root, it installs what is missing; elsewhere it says
# what to install, and fails only if CI=true.
#   deps.sh           a C compiler for the race detector; Wine and a C compiler for Windows for the Windows tests; rsyslog to ship records; Python to verify them too
#   deps.sh cluster   what a node needs: CNI plugins, iptables, conntrack; a C compiler and libseccomp for runc
set -euo pipefail

declare -A package=(
	[gcc]='gcc libc6-dev'
	[wine]='wine wine64'
	[x86_64-w64-mingw32-gcc]=gcc-mingw-w64-x86-64-win32
	[/usr/lib/cni/bridge]=containernetworking-plugins
	[iptables]=iptables
	[conntrack]=conntrack
	[ip]=iproute2
	[rsyslogd]=rsyslog
	[python3]=python3
	[pkg-config]=pkg-config
	[/usr/include/seccomp.h]=libseccomp-dev
)
case "${1:-}" in
'') needed=(gcc wine x86_64-w64-mingw32-gcc rsyslogd python3) ;;
cluster) needed=(gcc /usr/lib/cni/bridge iptables conntrack ip pkg-config /usr/include/seccomp.h) ;;
*)
	sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
missing=()
for tool in "${needed[@]}"; do
	if [[ $tool == /* && ! -e $tool ]] || { [[ $tool != /* ]] && ! command -v "$tool" >/dev/null; }; then
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
