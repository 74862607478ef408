package handler

import (
	"errors"
	"strings"
	"testing"
)

func TestParseServiceNameAcceptsNamesOfTheServiceManager(t *testing.T) {
	for _, in := range []string{"MSiSCSI", "x", "MSSQL$SQLEXPRESS", "WpnUserService_4a3b1", "Net Driver HPZ12", ".NET", "{8A2F}", strings.Repeat("a", 256)} {
		if got, err := ParseServiceName(in); string(got) != in || err != nil {
			t.Errorf("ParseServiceName(%q) = %q, %v", in, got, err)
		}
	}
}

func TestParseServiceNameRefuses(t *testing.T) {
	tests := map[string]string{
		"nothing":                    "",
		"a slash":                    "a/b",
		"a backslash":                `a\b`,
		"a quote":                    "a' OR Name LIKE '%",
		"a double quote":             `a"b`,
		"a backquote":                "a`b",
		"a typographic quote":        "a\u2019b",
		"a line break":               "a\nb",
		"a NUL":                      "a\x00",
		"a delete character":         "a\x7f",
		"a space before it":          " a",
		"a space behind it":          "a ",
		"a space alone":              " ",
		"257 characters":             strings.Repeat("a", 257),
		"letters that look the same": "МSiSCSI",
		"a letter that folds to K":   "\u212aDC",
		"bytes that are no UTF-8":    "a\xff",
		"a path":                     `..\..\x`,
		"megabytes":                  strings.Repeat("a", 1<<20),
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseServiceName(in)
			var bad *InvalidError
			if got != "" || !errors.As(err, &bad) {
				t.Fatalf("ParseServiceName = %q, %v", got, err)
			}
			if len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("error = %q", err)
			}
		})
	}
}

func FuzzParseServiceName(f *testing.F) {
	f.Add("MSiSCSI")
	f.Add("a'b")
	f.Fuzz(func(t *testing.T, s string) {
		name, err := ParseServiceName(s)
		if err == nil && (string(name) != s || s == "" || len(s) > MaxServiceName || strings.ContainsAny(s, "'\"`/\\\x00\n\r\t")) {
			t.Errorf("%q was taken for the name %q", s, name)
		}
	})
}
