#!/usr/bin/env bash
# Runs the benchmarks of an earlier commit and of this tree in turns, and says what has changed beyond noise.
#
#   hack/bench-compare.sh [-base COMMIT] [-bench REGEXP] [-rounds N] [-time DURATION] [PACKAGE...]
#
# The base is HEAD, or the commit before it if nothing is changed. Every package with benchmarks is measured, and if no package is named, so are whole programs: calls and
# starts (test/bench/node), reviews (test/bench/review) and the commands that read a log (test/bench/reading). Results are in build/compare/; benchstat of
# BENCHSTAT_VERSION is in bin/, where the Makefile builds it. It takes more than an hour; measure on a machine that does nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
base='' bench=. rounds=6 time=100ms
while [[ ${1-} == -* ]]; do
	case $1 in
	-h | --help)
		usage
		exit
		;;
	-base | -bench | -rounds | -time)
		[[ -n ${2-} ]] || { echo "bench-compare: $1 needs a value" >&2; exit 2; }
		declare "${1#-}=$2"
		shift 2
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done
: "${BENCHSTAT_VERSION:?run make bench-compare}"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "bench-compare: -rounds is a number of 1 or more, not $rounds" >&2; exit 2; }
((rounds >= 4)) || echo "bench-compare: fewer than 4 rounds show that everything runs; no change can be told from noise" >&2
if [[ -z $base ]]; then
	base=HEAD
	[[ -n $(git status --porcelain) ]] || base=HEAD^
fi
base=$(git rev-parse --verify --quiet "$base^{commit}") || { echo "bench-compare: there is no such commit" >&2; exit 2; }
packages=("$@")
programs=()
if [[ $# == 0 ]]; then
	mapfile -t packages < <(grep -rl --include='*_test.go' '^func Benchmark' . --exclude-dir=build | xargs -n1 dirname | sort -u)
	programs=(node review reading)
fi

out=$PWD/build/compare
rm -rf "$out"
git worktree prune
mkdir -p "$out"
git worktree add --quiet --detach "$out/tree" "$base"
trap 'git worktree remove --force "$out/tree"' EXIT

# build compiles what is measured of the tree $1 into $2. What the base does not have yet is left out.
build() {
	mkdir -p "$2"
	local package
	for package in "${packages[@]}"; do
		grep -qs '^func Benchmark' "$1/$package"/*_test.go || continue
		(cd "$1" && go test -c -o "$2/$(tr / _ <<<"${package#./}").test" "$package")
	done
	if [[ ${#programs[@]} != 0 ]]; then
		(cd "$1" && CGO_ENABLED=0 go build -tags grpcnotrace -ldflags '-s -w' -o "$2/" ./cmd/proxy ./cmd/webhook ./cmd/pipeguard)
	fi
}
echo "compiling $(git log -1 --format='%h %s' "$base"), and this tree"
build "$out/tree" "$out/before"
build "$PWD" "$out/after"
if [[ ${#programs[@]} != 0 ]]; then
	go build -o "$out/" ./test/bench/node ./test/bench/review ./test/bench/reading
	echo "writing a log to read"
	mkdir "$out/log"
	PIPEGUARD_LONG_LOG=100000000 PIPEGUARD_LONG_DIR=$out/log go test -count 1 -timeout 20m -run '^TestReadingALongLogTakesBoundedMemory$' ./test/audit >/dev/null
fi

# measure runs the benchmarks that $1 names once for the tree in $2, in the directories of package $3.
measure() {
	local tree=$PWD
	[[ $2 == after ]] || tree=$out/tree
	[[ -x $out/$2/$1.test ]] || return 0
	(cd "$tree/$3" && "$out/$2/$1.test" -test.run '^$' -test.bench "$bench" -test.benchmem -test.cpu 1 -test.benchtime "$time" -test.timeout 30m) >>"$out/$2.txt" ||
		{ echo "bench-compare: $3 failed; see build/compare/$2.txt" >&2; return 1; }
}
# run measures the programs of the tree in $2 once with the bench $1. An earlier tree may have no such option or answer.
run() {
	local lines=$out/$2.txt
	case $1 in
	node) "$out/node" -proxy "$out/$2/proxy" -turns 2 -benchmarks "$lines" ;;
	review) "$out/review" -webhook "$out/$2/webhook" -turns 2 -benchmarks "$lines" ;;
	reading) "$out/reading" -log "$out/log" -pipeguard "$out/$2/pipeguard" -turns 1 -benchmarks "$lines" ;;
	esac >/dev/null
}
for round in $(seq "$rounds"); do
	for package in "${packages[@]}"; do
		name=$(tr / _ <<<"${package#./}")
		for version in before after; do
			echo "round $round of $rounds: ${package#./}, $version"
			measure "$name" "$version" "$package"
		done
	done
	for program in "${programs[@]}"; do
		for version in before after; do
			echo "round $round of $rounds: $program, $version"
			run "$program" "$version" || { echo "bench-compare: $program failed with the programs of $version" >&2; [[ $version == before ]]; }
		done
	done
done

benchstat=("bin/benchstat-$BENCHSTAT_VERSION" -format)
"${benchstat[@]}" text before="$out/before.txt" after="$out/after.txt" >"$out/all.txt" 2>"$out/notes.txt"
# A row ends with what has changed, ~ if that is noise, and how sure that is.
"${benchstat[@]}" csv before="$out/before.txt" after="$out/after.txt" 2>/dev/null | awk -F, '
	/^pkg: / { package = substr($0, 6) }
	$1 == "" && $3 == "CI" { unit = $2 }
	NF >= 7 && $1 != "geomean" && $(NF-1) ~ /%$/ { printf "%s\t%s\t%s\t%s\t%s\n", $(NF-1), unit, package, $1, $NF }' >"$out/changed.txt"
if [[ -s $out/changed.txt ]]; then
	echo "changed beyond noise since $(git log -1 --format='%h %s' "$base"); all figures are in build/compare/all.txt:"
	cat "$out/changed.txt"
else
	echo "nothing has changed beyond noise; all figures are in build/compare/all.txt"
fi
