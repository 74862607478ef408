#!/usr/bin/env bash
# Fails if what is generated from the API types is not what stands in the tree.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$root/hack/generate.sh" "$fresh"
stale=0
while read -r file; do
	if ! diff -u "$root/$file" "$fresh/$file"; then
		stale=1
	fi
done < <(cd "$fresh" && find . -type f)
for file in "$root"/config/crd/pipeguard.dev_*.yaml "$root"/charts/pipeguard/files/crds/*.yaml; do
	if [[ ! -e $fresh/${file#"$root"/} ]]; then
		echo "$file is generated from no type" >&2
		stale=1
	fi
done
if ((stale)); then
	echo "run make generate" >&2
	exit 1
fi
