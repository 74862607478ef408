# The targets a contributor needs. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
LDFLAGS := -s -w
# Without gRPC's pages of traces, which nothing serves, the linker leaves out what is never called.
TAGS := grpcnotrace
GOLANGCI_LINT_VERSION := v2.15.0
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
# What was compiled in one clone serves the next: without -trimpath, each clone compiles every package of this module anew. Nothing here is debugged step by step: without
# tables for debuggers a cold build takes less.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath -gcflags=all=-dwarf=false

.PHONY: help agree attack build core deps floor test test-linux test-windows flaky e2e bench bench-compare lint generate verify run image push

help: ## Show this list.
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build webhook and pipeguard for this machine, proxy for this machine and for Windows, into bin/.
	CGO_ENABLED=0 go build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/ ./cmd/webhook ./cmd/proxy ./cmd/pipeguard
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/ ./cmd/proxy ./cmd/pipeguard

run: ## Show the main job: webhook and proxy refuse, admit, deny, allow and record. Needs only Go.
	CGO_ENABLED=0 go run ./test/quickstart

# The tools are compiled where Wine's tests wait.
test: deps ## Run every test, the Windows ones under Wine. Installs what it needs on Debian, as root.
	nice -n 19 test/tools/build api & test/windows/run.sh && wait $$! || { wait; exit 1; }
	test/linux.sh

test-linux: ## Run the Go and Rego tests, a real API server among them, with the race detector where there is a C compiler.
	test/tools/build api
	test/linux.sh

flaky: ## Run the tests of PACKAGES=./... many times beside busy processors, to find those that fail now and then.
	hack/flaky.sh $(PACKAGES)

test-windows: ## Run the cross-compiled tests and the real proxy.exe under Wine.
	test/windows/run.sh

e2e: image ## Install the chart on a whole cluster on this machine (Debian, as root) and try it.
	hack/deps.sh cluster
	test/tools/build cluster
	go test -tags e2e -count=1 -timeout 45m -v ./test/e2e

attack: image ## Ask a whole cluster for pipes for ten minutes while its webhook is killed at random, with a floor.
	hack/deps.sh cluster
	test/tools/build cluster
	PIPEGUARD_E2E_ATTACK=10m go test -tags e2e -count=1 -timeout 40m -v -run '^TestPipeguardOnAWholeCluster$$/^(a_chart_without|one_line|with_a_floor|an_attack)' ./test/e2e

agree: ## Hold a million generated pairs of a policy and a caller against each other, at admission and on a node.
	PIPEGUARD_PAIRS=1000000 go test -count=1 -timeout 30m -v -run '^TestBothEndsSayTheSame$$' ./internal/nodepolicy

floor: ## Hold a million generated objects against the floor and the webhook, on the API server's own evaluation of CEL.
	cd test/floor && PIPEGUARD_FLOOR_OBJECTS=1000000 go test -count=1 -timeout 3h -v .

core: ## Print what must be read to believe that no call runs that is not allowed, in reading order.
	@hack/core.sh

deps: ## Install what the tests need beside Go (Debian, as root), or say what that is.
	hack/deps.sh

bench: ## Run the benchmarks beside the hot paths, and measure proxy and webhook against servers without them; files in build/.
	mkdir -p build
	go test -run '^$$' -bench . -benchmem -cpu 1 -count 6 -timeout 2h ./... | tee build/bench.txt
	go run ./test/bench/node -table build/node.md
	go run ./test/bench/worstcase -table build/worstcase.md
	go run ./test/bench/heavy | tee build/heavy.md
	go run ./test/bench/review -table build/review.md $(if $(wildcard dist/tools/gatekeeper),-gatekeeper dist/tools/gatekeeper)
	PIPEGUARD_NODES=10,1000,5000 go test -run TwoReplicasWriteTwoObjectsASecond -v -timeout 30m ./internal/controller/witness | tee build/witness.txt
	test/tools/build api
	go run ./test/bench

bench-compare: bin/benchstat-$(BENCHSTAT_VERSION) ## Run the benchmarks of BASE=commit (the one before) and of this tree in turns, and say what has changed beyond noise; about an hour.
	BENCHSTAT_VERSION=$(BENCHSTAT_VERSION) hack/bench-compare.sh $(if $(BASE),-base $(BASE)) $(if $(BENCH),-bench '$(BENCH)') $(PACKAGES)

bin/benchstat-$(BENCHSTAT_VERSION):
	GOBIN=$(CURDIR)/bin CGO_ENABLED=0 go install golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION)
	mv bin/benchstat $@

# Reviews are measured beside those of Gatekeeper if it is there. Its module is compiled in some ten minutes.
dist/tools/gatekeeper: test/tools/gatekeeper/go.mod test/tools/gatekeeper/go.sum
	cd test/tools/gatekeeper && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(CURDIR)/dist/tools/ github.com/open-policy-agent/gatekeeper/v3

lint: bin/golangci-lint-$(GOLANGCI_LINT_VERSION) ## Run the linters for Linux and for Windows.
	$< run ./...
	GOOS=windows CGO_ENABLED=0 $< run ./...

bin/golangci-lint-$(GOLANGCI_LINT_VERSION):
	GOBIN=$(CURDIR)/bin CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv bin/golangci-lint $@

generate: ## Rewrite what a tool writes: deep copies, CRDs, the API reference, formatting, module lists.
	go mod tidy
	hack/generate.sh
	go test -timeout 5m ./test/chart -run Kustomize -update
	gofmt -w $$(git ls-files '*.go')
	go run ./cmd/pipeguard policy fmt --write policies

verify: ## Check that nothing needs `make generate`, and vet for both systems.
	go mod tidy -diff
	test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	go run ./cmd/pipeguard policy fmt policies
	go vet ./...
	go vet -tags e2e ./test/e2e/...
	GOOS=windows go vet ./...
	cd hack/image && go mod tidy -diff && go vet .
	cd test/floor && go vet .
	hack/verify-generated.sh

image: ## Build the webhook's image for linux/amd64 and linux/arm64 and the nodes' for Windows, as OCI archives in dist/. Needs no Docker.
	cd hack/image && go test -timeout 10m . && go run . -source ../.. -output ../../dist

push: ## Push the images in dist/ to REGISTRY=registry.example.com/pipeguard, as docker login has its credentials. Needs no Docker.
	cd hack/image && go run . -source ../.. -output ../../dist -push '$(REGISTRY)' $(PUSH_FLAGS)
