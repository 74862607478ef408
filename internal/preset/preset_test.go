package preset_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/preset"
)

func TestEachPresetHoldsWhereItsSettingsAreInForce(t *testing.T) {
	var names []string
	for _, p := range preset.All() {
		names = append(names, p.Name)
		if found, differences := preset.Nearest(p.Settings); found.Name != p.Name || len(differences) > 0 {
			t.Errorf("the settings of %s: %s, but for %v", p.Name, found.Name, differences)
		}
		for path := range p.Settings {
			changed := maps.Clone(p.Settings)
			changed[path] = "other"
			if got, want := p.Differences(changed), []preset.Difference{{Path: path, Want: p.Settings[path], Got: "other"}}; !cmp.Equal(got, want) {
				t.Errorf("%s with another %s: %v", p.Name, path, got)
			}
			delete(changed, path)
			if got := p.Differences(changed); len(got) != 1 || got[0].Got != "" {
				t.Errorf("%s without %s: %v", p.Name, path, got)
			}
		}
	}
	if want := []string{"observe", "default", "strict"}; !slices.Equal(names, want) {
		t.Errorf("the presets: %q, want %q", names, want)
	}
}

func TestTheNextPresetIsTheStricterOne(t *testing.T) {
	observe, ok := preset.Find("observe")
	standard, hasNext := observe.Next()
	strict, hasThird := standard.Next()
	if _, hasMore := strict.Next(); !ok || !hasNext || !hasThird || hasMore || standard.Name != preset.Default || strict.Name != "strict" {
		t.Errorf("after observe %q, then %q, then more: %t", standard.Name, strict.Name, hasMore)
	}
	if _, ok := preset.Find("lenient"); ok {
		t.Error("a preset that there is not was found")
	}
	if _, ok := (preset.Preset{Name: "lenient"}).Next(); ok {
		t.Error("a preset that there is not has a next one")
	}
}

func TestAPresetSaysWhatDiffers(t *testing.T) {
	strict, _ := preset.Find("strict")
	live := maps.Clone(strict.Settings)
	live["parameters.hostProcess"] = "Audit"
	delete(live, "floor.mode")
	found, differences := preset.Nearest(live)
	if got, want := preset.Say(found.Name, differences), "strict, but for floor.mode, which is not known, parameters.hostProcess: Audit"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := preset.Say("observe", nil); got != "observe" {
		t.Errorf("%q", got)
	}
}

func TestPresetsAreNotChangedByWhoeverReadsThem(t *testing.T) {
	p, _ := preset.Find("strict")
	p.Settings["floor.mode"] = "Off"
	if again, _ := preset.Find("strict"); again.Settings["floor.mode"] != "Always" {
		t.Error("a preset was changed")
	}
}
