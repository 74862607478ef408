package handler_test

import (
	"errors"
	"strings"
	"testing"

	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestParseRemotePathAccepts(t *testing.T) {
	tests := []struct {
		in    string
		share handler.Share
		rel   []string
	}{
		{`\\server\share`, `\\server\share`, nil},
		{`//Server/SHARE/`, `\\server\share`, nil},
		{`\\server\share\Some\where`, `\\server\share`, []string{"Some", "where"}},
		{`//account.file.core.windows.net/pvc-1//sub dir`, `\\account.file.core.windows.net\pvc-1`, []string{"sub dir"}},
		{`\\192.0.2.7\data$`, `\\192.0.2.7\data$`, nil},
		{`\\2001-db8--1.ipv6-literal.net\x`, `\\2001-db8--1.ipv6-literal.net\x`, nil},
		{`\\NAS_01\Größe\ÄÖ`, `\\nas_01\größe`, []string{"ÄÖ"}},
		{`\\a\` + strings.Repeat("s", 80), handler.Share(`\\a\` + strings.Repeat("s", 80)), nil},
	}
	for _, tt := range tests {
		got, err := handler.ParseRemotePath(tt.in)
		if err != nil || got.Share() != tt.share || got.IsZero() {
			t.Errorf("ParseRemotePath(%q) = %q, %v", tt.in, got.Share(), err)
		}
		if want := strings.Join(append([]string{string(tt.share)}, tt.rel...), `\`); got.String() != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}

func TestParseRemotePathRefuses(t *testing.T) {
	refused := map[string]string{
		"a local path": `C:\a`, "one separator": `\server\share`, "three separators": `\\\server\share`, "a server alone": `\\server`,
		"a server and a separator": `\\server\`, "no server": `\\`, "an empty server": `\\\share`, "a relative path": `server\share`,
		"a device": `\\.\C:\x`, "a device as a share": `\\.\pipe`, "a literal path": `\\?\C:\x`, "a literal share": `\\?\UNC\server\share`, "an NT path": `\??\C:\x`,
		"a way up": `\\server\share\..\x`, "a way nowhere": `\\server\share\.\x`, "a way up as the share": `\\server\..`, "a hidden way up": `\\server\share\.. \x`,
		"a stream": `\\server\share\a:b`, "a drive": `\\server\C:`, "a wildcard": `\\server\share\*`, "a question mark": `\\server\share\?`, "a pipe": `\\server\share\a|b`,
		"a quote": `\\server\share'`, "a double quote": `\\server\sh"are`, "a backquote": "\\\\server\\share\\`", "a query": `\\server\x' OR '1'='1`,
		"a line break": "\\\\server\\share\na", "a NUL": "\\\\server\\share\x00", "a direction": "\\\\server\\share\\\u202ea", "a zero width space": "\\\\server\\share\\\u200b",
		"bytes that are no text": "\\\\server\\share\xff", "a letter that becomes another": "\\\\server\\\u212aey", "a letter of a path that becomes another": "\\\\server\\share\\\u0130",
		"a server with a port": `\\server@8080\share`, "a server over HTTP": `\\server@SSL\DavWWWRoot`, "a server with a colon": `\\::1\share`, "a server in brackets": `\\[::1]\share`,
		"a server of another script": "\\\\s\u0435rver\\share", "a server with a space": `\\ser ver\share`, "a server that ends in a dot": `\\server.\share`, "an empty label": `\\a..b\share`,
		"a server that begins with a hyphen": `\\-a\share`, "a short address": `\\127.1\share`, "an address as a number": `\\2130706433\share`, "an address in hexadecimal": `\\0x7f000001\share`,
		"an octal address": `\\0177.0.0.1\share`, "too large an address": `\\256.0.0.1\share`, "every address": `\\0.0.0.0\share`, "all machines": `\\255.255.255.255\share`, "some machines": `\\224.0.0.1\share`,
		"no literal": `\\.ipv6-literal.net\share`, "a wrong literal": `\\zz--1.ipv6-literal.net\share`, "a literal of none": `\\--.ipv6-literal.net\share`, "a literal of many": `\\ff02--1.ipv6-literal.net\share`,
		"a long server": `\\` + strings.Repeat("a.", 127) + `a\share`, "a long label": `\\` + strings.Repeat("a", 64) + `\share`, "a long share": `\\a\` + strings.Repeat("s", 81),
		"a long segment": `\\a\b\` + strings.Repeat("s", 256), "a long path": `\\a\b` + strings.Repeat(`\s`, 600), "megabytes": `\\` + strings.Repeat("x", 1<<20),
		"a whole drive": `\\server\C$`, "the system's directory": `\\server\Admin$\Temp`, "pipes": `\\server\IPC$\csi-proxy-disk-v1`, "no name": `\\server\$`, "pipes by their other name": `\\server\pipe\x`, "mailslots": `\\server\MailSlot`, "a WebDAV server": `\\server\DavWWWRoot\x`,
		"a share that nobody can make": `\\server\a[b]`, "a space before": `\\server\ share`, "a space behind": `\\server\share `, "a command": `\\$(calc)\share`,
	}
	for name, in := range refused {
		t.Run(name, func(t *testing.T) {
			got, err := handler.ParseRemotePath(in)
			var bad *handler.InvalidError
			if !got.IsZero() || !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "remote path (") || !strings.Contains(err.Error(), ") is invalid") {
				t.Fatalf("ParseRemotePath(%.60q) = %q, %v", in, got, err)
			}
			if len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\n\x00\u202e") {
				t.Errorf("error = %q", err)
			}
		})
	}
	if _, err := handler.ParseRemotePath(""); err == nil || err.Error() != "remote path is empty" {
		t.Errorf("error of an empty path = %v", err)
	}
}

// What orders requests by share must not take one share for two.
func FuzzSharesOfRequestsAreNamedAlike(f *testing.F) {
	for _, s := range []string{`\\server\share`, `//A//b//c`, `\\a\b$`, `\\A\\\Ä\x`, `C:\x`, `\\?\x\y`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := handler.ParseRemotePath(s)
		if err != nil {
			if !got.IsZero() {
				t.Errorf("%q is refused and read as %q", s, got)
			}
			return
		}
		if again, err := handler.ParseRemotePath(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%q is read as %q, and that as %q, %v", s, got, again, err)
		}
		if strings.ContainsAny(got.String(), "'\"`/:*?<>|\n\x00") || strings.Contains(got.String(), `\.`+`.\`) {
			t.Errorf("%q is read as %q", s, got)
		}
		targets := apiserver.Targets(&apiserver.Call{Operation: &apiserver.Operation{Group: "smb"}, Request: &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: s}})
		if len(targets) != 1 || targets[0].Kind != "share" || targets[0].Value != string(got.Share()) {
			t.Errorf("%q is %q, and its target %q", s, got.Share(), targets)
		}
	})
}
