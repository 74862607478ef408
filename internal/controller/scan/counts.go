package scan

import (
	"cmp"
	"maps"
	"slices"
)

// series is what findings are counted by: a rule and its effect.
type series struct{ effect, code string }

// otherCode stands for all rules that the policies do not describe: their codes may be computed, a new one for each object.
const otherCode = "other"

func seriesOf(f Finding) series {
	if !f.Known {
		return series{effectOf(f), otherCode}
	}
	return series{effectOf(f), ruleOf(f)}
}

// counts counts findings. The zero value is empty.
type counts map[series]int32

func (c *counts) addOne(key series) { c.add(counts{key: 1}) }

func (c *counts) add(more counts) {
	if *c == nil && len(more) > 0 {
		*c = counts{}
	}
	for key, n := range more {
		(*c)[key] += n
	}
}

func (c counts) sorted() []series {
	return slices.SortedFunc(maps.Keys(c), func(a, b series) int {
		return cmp.Or(cmp.Compare(rank(a.effect), rank(b.effect)), cmp.Compare(a.code, b.code))
	})
}
