package policies_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/test/policytest"
)

func TestExamplesAreOfTheSchema(t *testing.T) {
	matches := policytest.Matcher(t, policies.InputSchema())
	entries, err := fs.ReadDir(policies.Examples(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		// The example of PG000 is one of another schema.
		if want := e.Name() != "input"; matches(example(t, e.Name())) != want {
			t.Errorf("%s: matches is %v", e.Name(), !want)
		}
	}
}

// Each change of one place makes an input that is refused: a part left out, one too many, and one of the wrong type.
func TestSchemaRefusesEveryDeparture(t *testing.T) {
	policytest.WithoutRaceDetector(t)
	matches := policytest.Matcher(t, policies.InputSchema())
	refused := 0
	for _, name := range []string{"driver", "unmounted", "persistent_volume"} {
		document := example(t, name)
		var visit func(path string, v any)
		try := func(path, what string) {
			t.Helper()
			if matches(document) {
				t.Errorf("%s: %s: it is of the schema", path, what)
			}
			refused++
		}
		visit = func(path string, v any) {
			switch v := v.(type) {
			case map[string]any:
				free := path == ".namespaceLabels" || strings.HasSuffix(path, ".labels") || strings.HasSuffix(path, ".annotations")
				if !free {
					v["unknown"] = "x"
					try(path, "a key more")
					delete(v, "unknown")
				}
				for k, before := range v {
					if !free {
						delete(v, k)
						try(path+"."+k, "left out")
					}
					v[k] = 7.5
					try(path+"."+k, "a number")
					v[k] = nil
					try(path+"."+k, "null")
					v[k] = before
					visit(path+"."+k, before)
				}
			case []any:
				for i, before := range v {
					v[i] = 7.5
					try(path+"[]", "a number")
					v[i] = before
				}
				if len(v) > 0 {
					visit(path+"[]", v[0])
				}
			}
		}
		visit("", document)
		if !matches(document) {
			t.Fatal("the document was not put together again")
		}
	}
	if refused < 200 {
		t.Errorf("only %d departures were tried", refused)
	}
}

// The type checker is what `opa check --schema` runs.
func TestPolicyTypechecksAgainstTheSchema(t *testing.T) {
	policytest.WithoutRaceDetector(t)
	check := policytest.Typechecks(t, policies.InputSchema(), modules(t).Files, "pipeguard.admission")
	if err := check(""); err != nil {
		t.Fatal(err)
	}
	for _, misspelt := range []string{`input.namespaces == "x"`, `input.mounts[_].priviledged`, `input.user.group`, `input.containers[_].kind`, `input.mounts.guarded`, `input.pod.name`, `input.persistentVolumes[_].volume`, `input.mounts[_].equalpower`, `input.mounts[_].access.subject`, `input.unmounted[_].access.subjects[_].expires`, `input.persistentVolumes[_].access.nearest.field`} {
		if check(misspelt) == nil {
			t.Errorf("%s passes", misspelt)
		}
	}
	if err := check(`input.object.spec.anything == 1`); err != nil {
		t.Errorf("the object is free: %v", err)
	}
}
