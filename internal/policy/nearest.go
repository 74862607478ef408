package policy

import (
	"slices"
	"strings"
)

// Nearest is the name that differs least: in the case of its letters alone, or in at most a third of them. It is empty if there is none.
func Nearest(word string, names []string) string {
	best, least := "", len(word)/3+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters must be put in, left out or replaced to make one word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
