#!/usr/bin/env bash
# Writes what is generated: from the API types their deep copies, the CRDs (for kustomize and for the chart) and the API reference;
# from the types of audit records their reference and their JSON Schema; and the chart's copies of what is known of drivers and of its presets.
#   generate.sh [DIRECTORY]   below DIRECTORY instead of the project's root
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root}
bin=$root/bin
cd "$root"

# tool PACKAGE VERSION builds a program once, into bin/.
tool() {
	local name=${1##*/}
	if [[ ! -x $bin/$name-$2 ]]; then
		GOBIN=$bin CGO_ENABLED=0 GOFLAGS=-mod=mod go install "$1@$2"
		mv "$bin/$name" "$bin/$name-$2"
	fi
	echo "$bin/$name-$2"
}

controller_gen=$(tool sigs.k8s.io/controller-tools/cmd/controller-gen v0.23.0)
reference=$(tool github.com/elastic/crd-ref-docs v0.3.0)

mkdir -p "$out/api/v1alpha1" "$out/config/crd" "$out/charts/pipeguard/files/crds" "$out/docs"
go run ./hack/audit-records "$out"
"$controller_gen" object paths=./api/v1alpha1 output:object:dir="$out/api/v1alpha1"
"$controller_gen" crd paths=./api/v1alpha1 output:crd:dir="$out/config/crd"
cp "$out"/config/crd/pipeguard.dev_*.yaml "$out/charts/pipeguard/files/crds/"
cp internal/proxy/acl/profiles/drivers.yaml internal/preset/presets.yaml "$out/charts/pipeguard/files/"
"$reference" --source-path=api/v1alpha1 --config=hack/api-reference.yaml --renderer=markdown --log-level=ERROR \
	--templates-dir=hack/api-reference --output-path="$out/docs/api.md"
