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
	./internal/audit/export
	./internal/audit/hunt
	./internal/audit/inert
	./internal/audit/report
	./internal/audit/schema
	./internal/bundle/compile
	./internal/bundle/rules
	./internal/core/...
	./internal/filetrust
	./internal/plainyaml
	./internal/policyset
	./internal/proxy/acl/profiles
	./internal/proxy/handler
	./internal/proxy/raw
	./internal/proxy/secret
	./packaging/...
	./test/chart
	./test/docs
)
mapfile -t alone <test/alone.txt # tests of other packages that try one thing after another, very often
policies=(./policies/... ./internal/policy ./internal/bundle/node) # which leave most of their tests to a run without it

# -vet=off: `make verify` vets, for both systems. One package more at a time than there are processors.
go_test() {
	go test -vet=off -ldflags '-s -w' -shuffle=on -timeout 30m -p $(($(nproc) + 1)) "$@"
}
if ! command -v gcc >/dev/null; then
	echo 'NO RACE DETECTOR: there is no gcc' >&2
	go_test ./test/integration ./...
	exit
fi

names="^($(IFS='|' && echo "${alone[*]}"))\$"
mapfile -t slow < <(grep -rlE --include='*_test.go' "^func ($(IFS='|' && echo "${alone[*]}"))\(" ./cmd ./internal | xargs -n 1 dirname | sort -u)
mapfile -t raced < <(go list ./... | grep -vxFf <(go list "${plain[@]}"))

echo 'compiling and running the tests with the race detector' >&2
# Those that take longest first, test/integration before all: it waits for others. GORACE: the race detector sleeps a second at each end of a program otherwise.
GORACE=atexit_sleep_ms=20 go_test -race -skip "$names" ./test/integration ./cmd/proxy ./cmd/pipeguard ./cmd/webhook ./test/audit/... ./internal/proxy ./internal/admission ./internal/audit/segment ./internal/audit/evidence "${raced[@]}"
echo 'compiling and running those that take ten times as long with it' >&2
# GOGC: what compiles Rego makes little but garbage.
export CGO_ENABLED=0 GOGC=400
go_test "${policies[@]}" "${plain[@]}"
go_test -run "$names" "${slow[@]}"
