package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decideNothing are the other fields that name files, each with the reason why others may change what is there.
var decideNothing = map[string]string{
	"audit.path":                   "the log makes its directory private itself",
	"audit.signing.key":            "a key that others could change is made private, or refused, where it is read",
	"audit.signing.old":            "as the key",
	"audit.witness.key":            "it is the key itself",
	"audit.witness.caFile":         "cosignatures are verified by the witness's key",
	"audit.copies.otlp.caFile":     "copies decide nothing",
	"bundle.file":                  "bundles are signed",
	"bundle.caFile":                "bundles are signed",
	"bundle.dir":                   "the directory is made private where it is used",
	"containers.kubelet.tokenFile": "it says who asks and not who answers",
	"containers.kubelet.certFile":  "it says who asks and not who answers",
	"containers.kubelet.keyFile":   "it says who asks and not who answers",
	"tokens.verify.api.tokenFile":  "it says who asks and not who answers",
	"tokens.verify.api.certFile":   "it says who asks and not who answers",
	"tokens.verify.api.keyFile":    "it says who asks and not who answers",
	"log.path":                     "diagnostics decide nothing",
}

var namesAFile = regexp.MustCompile(`(?i)(file|key|keys|path|dir|modules|snapshot|old)$`)

func TestEveryFieldThatNamesAFileSaysWhetherItDecides(t *testing.T) {
	var p Proxy
	var want []string
	seen := map[string]bool{}
	var visit func(prefix string, v reflect.Value)
	visit = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if name == "" || name == "-" {
				continue
			}
			at := strings.TrimPrefix(prefix+"."+name, ".")
			switch value := v.Field(i); {
			case value.Kind() == reflect.Struct:
				visit(at, value)
			case value.Kind() == reflect.String && namesAFile.MatchString(name):
				seen[at] = true
				if decideNothing[at] != "it is the key itself" {
					value.SetString(at)
					relative := p.pathFaults()
					value.SetString(`C:\a\..\` + at)
					if above := p.pathFaults(); !slices.Equal(relative, []string{at}) || !slices.Equal(above, relative) {
						t.Errorf("%s as a relative path: faults of %q; as one with ..: %q", at, relative, above)
					}
				}
				value.SetString(`C:\` + at)
				if decideNothing[at] == "" {
					want = append(want, at)
				}
			}
		}
	}
	visit("", reflect.ValueOf(&p).Elem())
	var got []string
	for _, f := range p.DecidingFiles() {
		got = append(got, f.Field)
		if f.Path != `C:\`+f.Field {
			t.Errorf("%s is %s", f.Field, f.Path)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("files that decide are %q; fields that name files and are not said to decide nothing are %q", got, want)
	}
	for field := range decideNothing {
		if !seen[field] {
			t.Errorf("there is no field %s", field)
		}
	}
	if got := (Proxy{}).DecidingFiles(); got != nil {
		t.Errorf("without a setting: %v", got)
	}
}

// pathFaults are the fields whose paths are refused.
func (p *Proxy) pathFaults() (fields []string) {
	p.checkPaths(func(field, _ string, _ ...any) { fields = append(fields, field) })
	return fields
}
