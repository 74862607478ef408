#!/usr/bin/env bash
# Prints the files of internal/core/reading.txt in their order, with their lines.
set -euo pipefail
cd "$(dirname "$0")/.."
total=0
while IFS= read -r line; do
	case $line in
	'') ;;
	'#'*) printf '\n%s\n' "${line#\# }" ;;
	*)
		lines=$(wc -l <"$line")
		total=$((total + lines))
		printf '%7d  %s\n' "$lines" "$line"
		;;
	esac
done <internal/core/reading.txt
printf '\n%7d  lines\n' "$total"
