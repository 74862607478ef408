#!/usr/bin/env bash
# Runs the tests of each package many times, in random orders and with the race detector, several packages at a time, so that
# the processors are busy. It prints the seed and the output of each run that fails, and how often each package ran.
#
#   hack/flaky.sh [PACKAGE...]   these packages, in this order; all by default
#
#   RUNS=200       of a package whose first run takes less than ten seconds
#   SLOW_RUNS=10   of the others
#   LANES=         packages at a time; three for each processor by default
#   BUSY=0         loops beside them, for a few packages that leave the processors idle
#
# Passed runs and failures are counted in build/flaky and not repeated as long as the test binary stays the same; the processor
# time of each run, of programs and of the system, is there too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export RUNS=${RUNS:-200} SLOW_RUNS=${SLOW_RUNS:-10} OUT=$PWD/build/flaky GORACE=atexit_sleep_ms=20
mkdir -p "$OUT"

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for ((i = 0; i < ${BUSY:-0}; i++)); do
	while :; do :; done &
	busy+=("$!")
done

# counted FILE: the number in it
counted() { cat "$1" 2>/dev/null || echo 0; }

# once BINARY DIRECTORY STATE: one run. A failure is kept, and printed whole.
once() {
	local seed=$SRANDOM log=$3/log
	if (cd "$2" && TIMEFORMAT='%U %S' && time "$1" -test.shuffle="$seed" -test.timeout=20m >"$log" 2>&1 </dev/null) 2>>"$3/processor"; then
		echo $(($(counted "$3/passed") + 1)) >"$3/passed"
		return
	fi
	mv "$log" "$3/failed-$seed"
	echo $(($(counted "$3/failed") + 1)) >"$3/failed"
	(
		flock 9
		printf -- '--- %s, seed %s:\n' "$2" "$seed"
		cat "$3/failed-$seed"
	) 9>"$OUT/lock"
}

# package IMPORT-PATH DIRECTORY: all its runs
package() {
	local state=$OUT/${1//\//_} started want
	mkdir -p "$state"
	go test -race -vet=off -c -o "$state/new.test" "$1"
	if ! cmp -s "$state/new.test" "$state/this.test"; then
		rm -f "$state"/{passed,failed,seconds}
	fi
	mv "$state/new.test" "$state/this.test"
	if [[ ! -e $state/seconds ]]; then
		started=$SECONDS
		once "$state/this.test" "$2" "$state"
		echo $((SECONDS - started)) >"$state/seconds"
	fi
	want=$(($(<"$state/seconds") < 10 ? RUNS : SLOW_RUNS))
	while (($(counted "$state/passed") + $(counted "$state/failed") < want)); do
		once "$state/this.test" "$2" "$state"
	done
	printf '%-70s passed %d, failed %d\n' "$1" "$(counted "$state/passed")" "$(counted "$state/failed")"
	(($(counted "$state/failed") == 0))
}
export -f counted once package

go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "${@:-./...}" |
	xargs -r -L 1 -P "${LANES:-$((3 * $(nproc)))}" bash -euc 'package "$1" "$2"' package
