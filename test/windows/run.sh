#!/usr/bin/env bash
# Runs the Windows test binaries and the real proxy.exe under Wine.
#
#   test/windows/run.sh                every package of the list, then the proxy
#   test/windows/run.sh PACKAGE...     these packages alone
#
# Needs wine64, gcc-mingw-w64-x86-64-win32 and Go. Where they are missing it says so and passes, unless CI=true.
# It keeps a Wine prefix and the binaries in build/wine and ends every Wine process of that prefix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

packages=( # those that take longest first
	./internal/audit/evidence
	./internal/proxy
	./internal/audit/segment
	./internal/winsvc
	./cmd/proxy/internal/install
	./internal/proxy/forward
	./internal/core/pipepath
	./internal/audit
	./internal/audit/query
	./internal/audit/copies
	./internal/bundle
	./internal/nodepolicy
	./internal/config
	./internal/filetrust
	./internal/logfile
	./internal/policy/stack
	./internal/proxy/acl
	./internal/proxy/apiserver
	./internal/proxy/cri
	./internal/proxy/fakehost
	./internal/proxy/handler
	./internal/proxy/kubelet
	./internal/proxy/peer
	./internal/proxy/pipe
	./internal/proxy/watch
	./internal/core/access
	./internal/core/safepath
	./internal/proxy/winhost
	./internal/proxy/raw
	./internal/proxy/wmi
	./internal/proxy/order
	./client/token
	./internal/proxy/report
	./internal/proxy/requestpolicy
	./internal/proxy/activerules
	./internal/proxy/token
	./cmd/proxy
	./test/windows
)
if (($# > 0)); then
	packages=("$@")
fi

# Tests that try one thing very often, on files or on paths as texts: they do the same on Linux.
mapfile -t skipped <test/alone.txt
skipped+=(
	TestFoldIsStableAndBlindToCaseForEveryRune
	TestJudgeOfLongPathsTakesLinearTime
	TestNothingCanBePutIntoAVoidSegment
	TestRecordsThatWereAddedAfterAKillPushNothingOut
	TestThePowerOfLongPathsTakesLinearTime
	TestWhatIsInPlantedSegmentsStopsNoStart
	TestWhatWasSignedElsewhereOfPrunedRecordsIsComparedOrNamed
	TestWriterAndEvidenceReadAnAddedOpeningAlike
)

# --- the tools ---------------------------------------------------------------------------------

wine=$(command -v wine64 || command -v /usr/lib/wine/wine64 || command -v wine || true)
wineserver=$(command -v wineserver || command -v /usr/lib/wine/wineserver || true)
mingw=$(command -v x86_64-w64-mingw32-gcc || true)
missing=()
[[ -n $wine && -n $wineserver ]] || missing+=(wine64)
[[ -n $mingw ]] || missing+=(gcc-mingw-w64-x86-64-win32)
if ((${#missing[@]} > 0)); then
	echo "test/windows: NOT RUN, no Windows binary was tested: apt-get install ${missing[*]}" >&2
	if [[ ${CI:-} == true ]]; then
		exit 1
	fi
	exit 0
fi

# --- the place ---------------------------------------------------------------------------------

out=$PWD/build/wine
# The real proxy has the pipes and the service manager of a prefix to itself, and the packages another one meanwhile.
prefixes=("$out/prefix" "$out/prefix-proxy")
mkdir -p "$out/bin" "$out/log"
exec 9>"$out/lock"
flock 9 # one run at a time

export WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' DISPLAY=
# Go's runtime stops its threads by SuspendThread, also for the collector. Under Wine a test binary stood still in tests that wait for nothing, twice in a
# few whole runs, so that not even its own time limit ended it. Without that the runtime stops threads where they look themselves.
export GODEBUG=asyncpreemptoff=1
export WINEPREFIX
trap 'for WINEPREFIX in "${prefixes[@]}"; do "$wineserver" -k 9>&- || true; done' EXIT

rm -rf "${out:?}/bin" "$out/log"
mkdir -p "$out/bin" "$out/log" "$out/_overlay" # the go command passes over names that begin with _

version=$("$wine" --version)
dll=$out/bcryptprimitives.dll
"$mingw" -shared -O2 -Wall -Wextra -Werror -o "$dll" test/windows/dll/bcryptprimitives.c -ladvapi32
for WINEPREFIX in "${prefixes[@]}"; do
	rm -rf "$WINEPREFIX/drive_c/pipeguard" "$WINEPREFIX"/drive_c/users/*/Temp
	if [[ $(cat "$WINEPREFIX/version" 2>/dev/null) != "$version" ]]; then
		echo "test/windows: making a prefix for $version in ${WINEPREFIX#"$PWD/"}, once" >&2
		for again in true false; do
			rm -rf "$WINEPREFIX"
			if "$wine" wineboot -i >"$out/log/wineboot" 2>&1 9>&-; then
				break
			fi
			cat "$out/log/wineboot" >&2
			"$wineserver" -k 9>&- || true
			$again # Wine cannot begin a process now and then, see run
		done
		echo "$version" >"$WINEPREFIX/version"
	fi
	# One server for the whole run: left to itself it ends when it has been idle, and a program that starts just then fails.
	# It is a new one, because the service manager of a prefix that was only just made starts no services.
	"$wineserver" -k 9>&- || true
	"$wineserver" -w 9>&-
	"$wineserver" -p 9>&-
	for home in "$WINEPREFIX"/drive_c/users/*; do
		mkdir -p "$home/Temp"
	done
	cp "$dll" "$WINEPREFIX/drive_c/windows/system32/"
	# A directory with a link that leads out of it. Windows programs cannot make one under Wine.
	mkdir -p "$WINEPREFIX/drive_c/pipeguard/work" "$WINEPREFIX/drive_c/pipeguard/outside"
	: >"$WINEPREFIX/drive_c/pipeguard/outside/secret"
	ln -s ../outside "$WINEPREFIX/drive_c/pipeguard/work/out"
done

# --- the binaries ------------------------------------------------------------------------------

# Wine answers STATUS_NOT_IMPLEMENTED to the newer way of deleting, and Go's os.RemoveAll does not then try the older
# one. Tests clean up with it, so they are built with a standard library that does. So are the programs: Windows never
# answers so, and with the other library all that they are made of would be compiled once more.
goroot=$(go env GOROOT)
deletion=$goroot/src/internal/syscall/windows/at_windows.go
sed 's/^\(\t*\)STATUS_NOT_SUPPORTED:/\1STATUS_NOT_SUPPORTED, NTStatus(0xC0000002):/' "$deletion" >"$out/_overlay/at_windows.go"
if cmp -s "$deletion" "$out/_overlay/at_windows.go"; then
	echo "test/windows: $deletion has changed: the clean-up of tests needs another way" >&2
	exit 1
fi
printf '{"Replace":{"%s":"%s"}}\n' "$deletion" "$out/_overlay/at_windows.go" >"$out/overlay.json"

export GOOS=windows GOARCH=amd64 CGO_ENABLED=0
binary() { # PACKAGE: the name of its test binary; two packages may have the same last name
	local name=${1#./}
	echo "${name//\//_}"
}
echo "test/windows: compiling the tests of ${#packages[@]} packages for Windows" >&2
# One run of the go command links several at a time. A compiler that does not collect what it has used takes three quarters of the time. What it would run them with keeps them for later, outside of Wine's one prefix.
OUT=$out ROOT=$PWD GOGC=off GOMEMLIMIT=2GiB go test -vet=off -ldflags '-s -w' -count=1 -timeout 15m -overlay "$out/overlay.json" -exec "bash $PWD/test/windows/keep.sh" "${packages[@]}" >"$out/log/compile" ||
	cat "$out/log/compile" >&2
if [[ " ${packages[*]} " == *" ./test/windows "* ]]; then
	# Its tests ask for the invented machine, which the program of nodes does not have.
	GOGC=off GOMEMLIMIT=2GiB go build -tags fakehost -overlay "$out/overlay.json" -ldflags '-s -w' -o "$out/bin/" ./cmd/proxy ./cmd/pipeguard
	cp "$out/bin/$(binary ./test/windows).test.exe" "$out/bin/stranger.exe"
fi

# --- the run -----------------------------------------------------------------------------------

windows_path() { # of a Unix path: Wine shows / as drive Z
	echo "Z:${1//\//\\}"
}

export PIPEGUARD_LINKED='C:\pipeguard'
PIPEGUARD_PROXY=$(windows_path "$out/bin/proxy.exe")
PIPEGUARD_STRANGER=$(windows_path "$out/bin/stranger.exe")
PIPEGUARD_CLI=$(windows_path "$out/bin/pipeguard.exe")
export PIPEGUARD_PROXY PIPEGUARD_STRANGER PIPEGUARD_CLI

run() { # PACKAGE: prints what go test prints, and the output of a failure
	local name started=$EPOCHREALTIME status=0 seconds
	name=$(binary "$1")
	local log=$out/log/$name short=false again
	if [[ $1 == ./internal/audit/* ]]; then
		short=true # what they try at every byte is no other on Windows, and is tried at each on Linux
	fi
	if [[ ! -e $out/bin/$name.test.exe ]]; then
		echo "FAIL	$1	[no test binary]"
		return 1
	fi
	for again in true false; do
		status=0
		(cd "$1" && timeout --kill-after=10 630 "$wine" "$out/bin/$name.test.exe" -test.v "-test.run=${PIPEGUARD_RUN:-.}" "-test.skip=^($(IFS='|' && echo "${skipped[*]}"))\$" -test.timeout=600s "-test.short=$short") >"$log" 2>&1 </dev/null 9>&- || status=$?
		# So Wine says that a process was gone before its program began: what maps its memory fails now and then. No program of ours can cause it.
		if ((status == 0)) || ! $again || ! grep -q 'fork/exec .*: Internal error\.' "$log"; then
			break
		fi
		echo "	$1: Wine could not begin a process, so the package runs once more: $(grep -m 1 -o 'fork/exec .*: Internal error\.' "$log")"
	done
	seconds=$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3fs", b - a }')
	grep -- '--- SKIP' "$log" | sed 's/^/	/' || true
	if ((status != 0)) || ! grep -qx 'PASS' <(tr -d '\r' <"$log") || { [[ ${CI:-} == true ]] && grep -q 'NOT TESTED' "$log"; }; then
		cat "$log"
		echo "FAIL	$1	$seconds (exit $status, under Wine)"
		return 1
	fi
	echo "ok  	$1	$seconds (under Wine)"
}

# Three at a time, on two processors: the proxy's own, which begins first, waits for services most of its time.
failed=0
running=0
start() { # PREFIX PACKAGE
	if ((running == 3)); then
		wait -n || failed=1
		running=$((running - 1))
	fi
	WINEPREFIX=$1 run "$2" &
	running=$((running + 1))
}
if [[ " ${packages[*]} " == *" ./test/windows "* ]]; then
	start "${prefixes[1]}" ./test/windows
fi
for package in "${packages[@]}"; do
	if [[ $package != ./test/windows ]]; then
		start "${prefixes[0]}" "$package"
	fi
done
while ((running > 0)); do
	wait -n || failed=1
	running=$((running - 1))
done
exit "$failed"
