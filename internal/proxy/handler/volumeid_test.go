package handler

import (
	"errors"
	"strings"
	"testing"
)

const goodVolume = `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9}\`

func TestParseVolumeIDAcceptsOneSpellingOfEachVolume(t *testing.T) {
	for _, in := range []string{goodVolume, strings.ToUpper(goodVolume), `\\?\VOLUME{0A1B2c3d-4e5f-6071-8293-A4B5C6D7E8F9}\`} {
		if got, err := ParseVolumeID(in); got != goodVolume || err != nil {
			t.Errorf("ParseVolumeID(%q) = %q, %v", in, got, err)
		}
	}
}

func TestParseVolumeIDRefuses(t *testing.T) {
	tests := map[string]string{
		"nothing":                    "",
		"no trailing backslash":      strings.TrimSuffix(goodVolume, `\`),
		"two trailing backslashes":   goodVolume + `\`,
		"a path on the volume":       goodVolume + `Windows`,
		"no prefix":                  `{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9}\`,
		"a device prefix":            strings.Replace(goodVolume, `\\?\`, `\\.\`, 1),
		"an NT prefix":               strings.Replace(goodVolume, `\\?\`, `\??\`, 1),
		"slashes":                    strings.ReplaceAll(goodVolume, `\`, `/`),
		"another device":             `\\?\PhysicalDrive0\`,
		"a share":                    `\\server\share\`,
		"a drive":                    `C:\`,
		"no braces":                  `\\?\Volume0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9  \`,
		"a digit too few":            `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f}\`,
		"a digit too many":           `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f90}\`,
		"no digit":                   `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8fg}\`,
		"hyphens elsewhere":          `\\?\Volume{0a1b2c3d4-e5f-6071-8293-a4b5c6d7e8f9}\`,
		"no hyphens":                 `\\?\Volume{0a1b2c3d04e5f060710829300a4b5c6d7e8f9}\`,
		"a hyphen too many":          `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7-8f9}\`,
		"a quote":                    `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f'}\`,
		"a query behind it":          goodVolume + `' OR '1'='1`,
		"a space before it":          " " + goodVolume,
		"a line break behind it":     goodVolume + "\n",
		"a NUL in it":                `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f` + "\x00" + `}\`,
		"digits of another script":   `\\?\Volume{0a1b2c3d-4e5f-6071-8293-a4b5c6d7e٣}\`,
		"a letter that folds to one": `\\?\Volume{ſa1b2c3d-4e5f-6071-8293-a4b5c6d7e8f}\`,
		"a command":                  `$(Remove-Item C:\ -Recurse)`,
		"megabytes":                  strings.Repeat("x", 1<<20),
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseVolumeID(in)
			var bad *InvalidError
			if got != "" || !errors.As(err, &bad) {
				t.Fatalf("ParseVolumeID = %q, %v", got, err)
			}
			if len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("error = %q", err)
			}
		})
	}
}

func FuzzParseVolumeID(f *testing.F) {
	f.Add(goodVolume)
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseVolumeID(s)
		if err != nil {
			return
		}
		if !strings.EqualFold(string(id), s) {
			t.Errorf("%q became %q", s, id)
		}
		if again, err := ParseVolumeID(string(id)); again != id || err != nil {
			t.Errorf("%q is not its own spelling: %q, %v", id, again, err)
		}
	})
}
