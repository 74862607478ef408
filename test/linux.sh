#!/usr/bin/env bash
# Runs the Go and Rego tests for Linux, with the race detector where there is a C compiler.
#
# With it, code takes some ten times as long. So what runs in one goroutine, in which it can find nothing, runs without: the packages and tests of the two lists below, to
# which a test of the repository's root holds them, and the thousands of tests of policies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

plain=( # packages that start no goroutine
	.
	./cmd/pipeguard/internal/apiserver
	./cmd/pipeguard/internal/manifest
	./deploy/...
	./internal/admission/jsonscan
	./internal/atmost
	./internal/audit/export
	./internal/audit/hunt
	./internal/audit/inert
	./internal/audit/report
	./internal/core/...
	./internal/filetrust
	./internal/plainyaml
	./internal/policyset
	./internal/proxy/acl/profiles
	./internal/proxy/handler
	./internal/proxy/raw
	./packaging/...
	./test/chart
	./test/docs
)
mapfile -t alone <test/alone.txt # tests of other packages that try one thing after another, very often
policies=(./policies/... ./internal/policy ./internal/nodepolicy) # which leave most of their tests to a run without it

# -vet=off: `make verify` vets, for both systems. GOGC and GOMEMLIMIT: a compiler that does not collect what it has used takes three quarters of the time.
# The tests run without them, unless GARBAGE says otherwise.
go_test() {
	GOGC=off GOMEMLIMIT=2GiB go test -exec "env -u GOMEMLIMIT GOGC=${GARBAGE:-100}" -vet=off -ldflags '-s -w' -shuffle=on -timeout 30m "$@"
}
if ! command -v gcc >/dev/null; then
	echo 'NO RACE DETECTOR: there is no gcc' >&2
	go_test -p $(($(nproc) + 1)) ./test/integration ./...
	(cd test/floor && go_test .)
	exit
fi

names="^($(IFS='|' && echo "${alone[*]}"))\$"
mapfile -t slow < <(grep -rlE --include='*_test.go' "^func ($(IFS='|' && echo "${alone[*]}"))\(" ./cmd ./internal | xargs -n 1 dirname | sort -u)
mapfile -t raced < <(go list ./... | grep -vxFf <(go list "${plain[@]}"))

# Those without the race detector, one package at a time, fill the time in which others wait.
# GARBAGE: what compiles Rego makes little but that.
log=$(mktemp)
set -m # a group of its own, which ends with this one
(
	export CGO_ENABLED=0 GARBAGE=400
	go_test -p 1 "${policies[@]}" "${plain[@]}"
	go_test -p 1 -run "$names" "${slow[@]}"
	cd test/floor && go_test . # a module of its own
) >"$log" 2>&1 &
beside=$!
set +m
trap 'kill -- "-$beside" 2>/dev/null || true; rm -f "$log"' EXIT

echo 'compiling and running the tests, with the race detector and beside that those that take ten times as long with it' >&2
failed=0
# Those that take longest first, test/integration before all: it waits for others. With the one beside it is one package more at a time than there are processors. GORACE: the
# race detector sleeps a second at each end of a program otherwise.
GORACE=atexit_sleep_ms=20 go_test -race -p "$(nproc)" -skip "$names" ./test/integration ./cmd/proxy ./cmd/webhook ./test/quickstart ./cmd/pipeguard/internal/{auditcmd,policycmd} ./test/audit/... ./internal/proxy ./internal/admission \
	./internal/audit/segment ./internal/audit/evidence "${raced[@]}" || failed=1
wait "$beside" || failed=1
echo 'without the race detector:'
cat "$log"
exit "$failed"
