package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// hides returns the forms in which a secret stands in a text.
func hides(text []byte, secret string) (forms []string) {
	wide := make([]byte, 0, 2*len(secret))
	for _, unit := range utf16.Encode([]rune(secret)) {
		wide = append(wide, byte(unit), byte(unit>>8)) // #nosec G115 -- its two halves
	}
	looked := map[string][]byte{
		"plain": []byte(secret), "hex": []byte(hex.EncodeToString([]byte(secret))), "UTF-16": wide, "upper case": []byte(strings.ToUpper(secret)),
	}
	// In base64 a text looks otherwise behind one or two bytes of something else, and its ends depend on its neighbours.
	for before := range 3 {
		coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		looked["base64 behind "+strings.Repeat("x", before)] = []byte(coded[4 : len(coded)-4])
	}
	for form, bad := range looked {
		if bytes.Contains(text, bad) {
			forms = append(forms, form)
		}
	}
	return forms
}

func TestNoSecretIsInAnyFile(t *testing.T) {
	s := playOnce(t)
	files := map[string][]byte{"what it said": []byte(s.said)}
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(path) //nolint:gosec // of this run
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 12 {
		t.Fatalf("only %d files were found", len(files))
	}
	for name, text := range files {
		for _, secret := range []string{sharePassword, guessed} {
			if forms := hides(text, secret); len(forms) > 0 {
				t.Errorf("%s holds a password: %q", name, forms)
			}
		}
	}
	if withheld := recordsOf(t, s.evidence(), "method=NewSmbGlobalMapping", "type=request"); len(withheld) != 5 {
		t.Errorf("%d records of mappings", len(withheld))
	} else {
		for _, r := range withheld {
			if !strings.Contains(string(r.What.Params), `"password":"[redacted]"`) || !strings.Contains(strings.Join(r.What.Redacted, " "), "password") {
				t.Errorf("nothing says that something was withheld: %s", r.What.Params)
			}
		}
	}
}

func TestTheSearchForSecretsFindsThem(t *testing.T) {
	const secret = "correct-horse-battery"
	for _, text := range []string{
		"x" + secret + "y", "x" + hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret + " and more")),
		base64.StdEncoding.EncodeToString([]byte("a" + secret)), base64.StdEncoding.EncodeToString([]byte("before" + "it" + secret + "!")), "c\x00o\x00r\x00r\x00e\x00c\x00t\x00-\x00h\x00o\x00r\x00s\x00e\x00-\x00b\x00a\x00t\x00t\x00e\x00r\x00y\x00",
	} {
		if len(hides([]byte(text), secret)) == 0 {
			t.Errorf("%q is not seen to hold it", text)
		}
	}
	if len(hides([]byte("correct horse"), secret)) > 0 {
		t.Error("a secret is seen where there is none")
	}
}
