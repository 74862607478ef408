package auditcmd

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

func TestAuditReportBeginsWithTheVerdictOfVerify(t *testing.T) {
	dir, keys, outside := keptLog(t)
	file := onlySegment(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other, otherKeys, _ := keptLog(t)
	given := []string{"--keys", keys, "--checkpoint", outside}
	for name, c := range map[string]struct {
		args   []string
		change func([]byte) []byte
		code   int
		class  string
		page   string
		errOut string
	}{
		"whole":                         {append([]string{dir}, given...), nil, 0, "ok", "cover every record", "verified up to 5\n"},
		"of the files":                  {append([]string{file}, given...), nil, 0, "ok", "cover every record", "verified up to 5\n"},
		"without an outside one":        {[]string{dir, "--keys", keys}, nil, 0, "incomplete", "no checkpoint that was held elsewhere", "verified up to 5, by checkpoints that lay beside the log alone"},
		"without keys":                  {[]string{dir}, nil, 0, "incomplete", "no verifier key is given", "not verified: no keys given"},
		"changed":                       {append([]string{dir}, given...), func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, cli.ExitNo, "tampered", "first place that does not fit, behind which nothing was looked at", "the log was changed"},
		"cut":                           {append([]string{dir}, given...), func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }, cli.ExitNo, "tampered", "records at its end are gone", "the log was changed"},
		"one of two":                    {[]string{dir, other, "--keys", keys, "--keys", otherKeys}, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, cli.ExitNo, "tampered", other + ": records 1 to 5; segments 1", "the log was changed"},
		"another key":                   {[]string{dir, "--keys", otherKeys, "--checkpoint", outside}, nil, cli.ExitBadInput, "unverified", "could not be verified", "could not be verified"},
		"standard input":                {[]string{"-", "--keys", keys}, nil, cli.ExitBadInput, "unverified", "name the directory", "name the directory"},
		"standard input, nothing asked": {[]string{"-"}, nil, 0, "unverified", "name the directory", "not verified: no keys given"},
		"a directory and a file":        {append([]string{dir, onlySegment(t, other)}, given...), nil, cli.ExitBadInput, "unverified", "not verified together", "not verified together"},
		"a missing key":                 {[]string{dir, "--keys", "missing"}, nil, cli.ExitBadInput, "", "", "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			now := bytes.Clone(text)
			if c.change != nil {
				now = c.change(now)
			}
			if err := os.WriteFile(file, now, 0o600); err != nil {
				t.Fatal(err)
			}
			got := evidenceCommand(t, append([]string{"report", "-o", "-", "--where", "id!=x"}, c.args...)...)
			if got.Code != c.code || !strings.Contains(got.ErrOut, c.errOut) || c.errOut == "" && got.ErrOut != "" {
				t.Errorf("exit code %d, %q; want %d, %q", got.Code, got.ErrOut, c.code, c.errOut)
			}
			if c.class == "" {
				if got.Out != "" {
					t.Error("a page was written")
				}
				return
			}
			page := got.Out[strings.Index(got.Out, "<body>"):]
			if verdict, rest, ok := strings.Cut(page, "</section>"); !ok || !strings.Contains(verdict, `class="verdict `+c.class+`"`) || !strings.Contains(verdict, c.page) || strings.Contains(rest, "class=\"verdict") {
				t.Errorf("the page begins with %s", verdict)
			}
		})
	}
}
