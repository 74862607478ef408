package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/version"
)

type settings struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Number     int               `yaml:"number"`
	Texts      []string          `yaml:"texts"`
	Nested     struct{ A int }   `yaml:"nested"`
	Map        map[string]string `yaml:"map"`
	Time       time.Duration     `yaml:"time"`
	Any        any               `yaml:"any"`
}

const head = "apiVersion: pipeguard.dev/v1alpha1\nkind: Settings\n"

// A file that is named by mistake, or a setting in the place of another, may be a secret.
func TestErrorsQuoteNoValue(t *testing.T) {
	const secret = "Secr3tT0ken"
	for name, c := range map[string]struct{ text, want string }{
		"a token":             {secret, "f:1:1: kind: want Settings"},
		"several":             {secret + "\n" + secret, "f:1:1: apiVersion: want pipeguard.dev/v1alpha1"},
		"a password":          {"password: " + secret, "f:1:1: kind"},
		"a key":               {secret + ": 1\n" + secret + ": 1\n", "f:1:1: kind"},
		"a key in PEM":        {"-----BEGIN KEY-----\n" + secret + "\n-----END KEY-----\n", "f:1:1: kind"},
		"a kind":              {"apiVersion: " + secret + "\nkind: " + secret + "\n" + secret + ": 1\n", "f:1:13: apiVersion: want"},
		"a Secret":            {"apiVersion: v1\nkind: Secret\ndata: {a: " + secret + "}\n", "f:2:7: kind"},
		"JSON":                {`{"token": "` + secret + `"}`, "f:1:1: kind"},
		"no YAML":             {"%" + secret, "not valid YAML"},
		"half of a file":      {"a: [" + secret, "not valid YAML: yaml: line 1"},
		"an alias":            {"*" + secret, "an alias of an anchor that is not there"},
		"a tag":               {"!" + secret + " a", "f:1:1: kind"},
		"characters":          {secret + "\u200b", "f:1:1: kind"},
		"a text for a number": {head + "number: " + secret, "line 3: a value of type !!str where int is expected"},
		"of two lines":        {head + "number: '" + secret + "\n\n " + secret + "'", "line 3: a value of type !!str"},
		"a text for a list":   {head + "texts: " + secret, "line 3: a value of type !!str where []string"},
		"a list for a text":   {head + "map: {a: [" + secret + "]}", "line 3: a value of type !!seq where string"},
		"a map for a list":    {head + "texts: {" + secret + ": 1}", "line 3: a value of type !!map where []string"},
		"a duration":          {head + "time: " + secret, "line 3: a value of type !!str where time.Duration"},
		"a number":            {head + "number: 0x5EC7E7", "line 3: a number of another base"},
		"a number too large":  {head + "number: 12345678901234567890", "line 3: a value of type !!int where int"},
		"an alias of itself":  {head + "any: &" + secret + " [*" + secret + "]", "line 3: anchors, aliases and merges"},
		"a list as a key":     {head + "map: {[" + secret + "]: a}", "line 3: a value of type !!seq where string"},
		"another document":    {head + "---\n" + secret, "more than one document"},
	} {
		if _, err := Decode("f", "Settings", []byte(c.text), &settings{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		} else if strings.Contains(err.Error(), secret[:4]) || strings.Contains(err.Error(), "5EC7E7") || strings.Contains(err.Error(), "12345") {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
	var into settings
	file, err := Decode("f", "Settings", []byte(head+"number: 1.5\n"), &into)
	if err == nil {
		err = file.CheckText(into, nil)
	}
	if err == nil || strings.Contains(err.Error(), "1.5") {
		t.Error(err)
	}
}

func TestUnknownKeysAreNamed(t *testing.T) {
	_, err := Decode("f", "Settings", []byte(head+"nested: {b: 1}\n\"numb\\er\": 2\n"+strings.Repeat("k", 100)+": 1\n"), &settings{})
	remedy := ": " + version.Number() + " does not have it; correct the key, or run the release that has it"
	want := "configuration f: line 3: unknown key \"b\"" + remedy + "\nline 4: unknown key \"numb\\x1br\"" + remedy +
		"\nline 5: unknown key \"" + strings.Repeat("k", 64) + "…\"" + remedy
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOnlyPlainFilesAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, make([]byte, MaxSize+2), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(file); text != nil || err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	if _, err := Decode("f", "Settings", make([]byte, MaxSize+1), &settings{}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
	for _, name := range []string{filepath.Dir(file), file + "x"} {
		if _, err := Read(name); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}
