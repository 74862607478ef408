package preset

import (
	"bytes"
	_ "embed"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed presets.yaml
var text []byte

// Default is the preset of a release that names none.
const Default = "default"

// None is the setting of a mapping that is empty.
const None = "none"

// Settings are values of the chart, by their paths, such as "parameters.hostProcess".
type Settings map[string]string

// Preset is one of the chart's.
type Preset struct {
	Name     string
	Settings Settings
}

var all = read(text)

// read reads presets.yaml, which is part of the program: a fault in it is one of the program.
func read(text []byte) (list []Preset) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		panic(err)
	}
	return list
}

// All are the presets, from the most lenient to the strictest.
func All() []Preset {
	out := slices.Clone(all)
	for i := range out {
		out[i].Settings = maps.Clone(out[i].Settings)
	}
	return out
}

// Find returns the preset of a name, and false if there is none.
func Find(name string) (Preset, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// Difference is a setting that is not the preset's.
type Difference struct{ Path, Want, Got string }

// Differences are those of settings in force from the preset's, sorted by their paths. What the preset leaves open is no difference; a setting that is missing
// is one.
func (p Preset) Differences(live Settings) (out []Difference) {
	for _, path := range slices.Sorted(maps.Keys(p.Settings)) {
		if got := live[path]; got != p.Settings[path] {
			out = append(out, Difference{path, p.Settings[path], got})
		}
	}
	return out
}

// Nearest is the preset with the fewest differences from the settings in force. Of several, the default is preferred, then the more lenient one.
func Nearest(live Settings) (nearest Preset, differences []Difference) {
	list := All()
	slices.SortStableFunc(list, func(a, b Preset) int {
		switch {
		case a.Name == Default:
			return -1
		case b.Name == Default:
			return 1
		}
		return 0
	})
	for i, p := range list {
		if own := p.Differences(live); i == 0 || len(own) < len(differences) {
			nearest, differences = p, own
		}
	}
	return nearest, differences
}

// Next is the next stricter preset, and false after the strictest.
func (p Preset) Next() (Preset, bool) {
	list := All()
	at := slices.IndexFunc(list, func(o Preset) bool { return o.Name == p.Name })
	if at < 0 || at+1 == len(list) {
		return Preset{}, false
	}
	return list[at+1], true
}

// Say names a preset with what differs from it, as the chart's notes do: "strict, but for parameters.hostProcess: Audit".
func Say(name string, differences []Difference) string {
	if len(differences) == 0 {
		return name
	}
	texts := make([]string, len(differences))
	for i, d := range differences {
		texts[i] = d.Path + ": " + d.Got
		if d.Got == "" {
			texts[i] = d.Path + ", which is not known"
		}
	}
	return name + ", but for " + strings.Join(texts, ", ")
}
