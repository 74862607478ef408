#!/usr/bin/env bash
# Runs the tests of each package many times, in random orders and with the race detector, beside loops that keep the
# processors busy. It prints the seed and the output of each run that fails, and how often each package ran.
#
#   hack/flaky.sh [PACKAGE...]   these packages; all by default
#
#   RUNS=200       of a package whose first run takes less than ten seconds
#   SLOW_RUNS=10   of the others
#   BUSY=2         loops beside them
#
# Passed runs and failures are counted in build/flaky and not repeated as long as the test binary stays the same.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs=${RUNS:-200} slow_runs=${SLOW_RUNS:-10}
out=$PWD/build/flaky
mkdir -p "$out"

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for ((i = 0; i < ${BUSY:-2}; i++)); do
	while :; do :; done &
	busy+=("$!")
done

# counted FILE: the number in it
counted() { cat "$1" 2>/dev/null || echo 0; }

# once BINARY DIRECTORY STATE: one run. A failure is printed and kept.
once() {
	local seed=$SRANDOM log=$3/log
	if (cd "$2" && "$1" -test.shuffle="$seed" -test.timeout=20m) >"$log" 2>&1 </dev/null; then
		echo $(($(counted "$3/passed") + 1)) >"$3/passed"
		return
	fi
	mv "$log" "$3/failed-$seed"
	echo $(($(counted "$3/failed") + 1)) >"$3/failed"
	printf -- '--- %s, seed %s:\n' "$2" "$seed"
	cat "$3/failed-$seed"
}

failed=0
while read -r package directory; do
	state=$out/${package//\//_}
	mkdir -p "$state"
	go test -race -vet=off -c -o "$state/new.test" "$package"
	if ! cmp -s "$state/new.test" "$state/this.test"; then
		rm -f "$state"/{passed,failed,seconds}
	fi
	mv "$state/new.test" "$state/this.test"
	if [[ ! -e $state/seconds ]]; then
		started=$SECONDS
		once "$state/this.test" "$directory" "$state"
		echo $((SECONDS - started)) >"$state/seconds"
	fi
	want=$(($(<"$state/seconds") < 10 ? runs : slow_runs))
	while (($(counted "$state/passed") + $(counted "$state/failed") < want)); do
		once "$state/this.test" "$directory" "$state"
	done
	printf '%-70s passed %d, failed %d\n' "$package" "$(counted "$state/passed")" "$(counted "$state/failed")"
	if (($(counted "$state/failed") > 0)); then failed=1; fi
done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "${@:-./...}")
exit "$failed"
