package handler_test

import (
	"errors"
	"strings"
	"testing"

	iscsiapi "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestParseIQNAccepts(t *testing.T) {
	for _, in := range []string{
		"iqn.1991-05.com.microsoft:node", "iqn.2003-01.org.linux-iscsi.host.x8664:sn.3d74b8d4020a", "iqn.2001-04.com.example",
		"IQN.2000-01.com.Synology:NAS.Target-1.a/b_c", "eui.02004567A425678D", "naa.52004567BA64678D", "naa.62004567BA64678D0123456789ABCDEF",
		"iqn.2026-12.a:" + strings.Repeat("x", 209),
	} {
		if got, err := handler.ParseIQN(in); string(got) != in || err != nil {
			t.Errorf("ParseIQN(%q) = %q, %v", in, got, err)
		}
	}
}

func TestParseIQNRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "a word": "target", "a prefix": "iqn.", "no date": "iqn.com.example:a", "no month": "iqn.2026.com.example", "month 0": "iqn.2026-00.com.example", "month 13": "iqn.2026-13.com",
		"letters in the year": "iqn.20a6-01.com", "no authority": "iqn.2026-01.", "no authority but a name": "iqn.2026-01.:a", "an empty label": "iqn.2026-01.com..a", "a dot at the end": "iqn.2026-01.com.",
		"a slash in the authority": "iqn.2026-01.com/x", "another type": "nqn.2014-08.org.nvmexpress:x", "a short eui": "eui.0200", "no hexadecimal eui": "eui.02004567A425678G", "naa of 17": "naa.52004567BA64678D0",
		"a space": "iqn.2026-01.com:a b", "a quote": "iqn.2026-01.com:a'", "a double quote": `iqn.2026-01.com:a"`, "a backquote": "iqn.2026-01.com:a`", "a backslash": `iqn.2026-01.com:a\`,
		"a query": "iqn.2026-01.com:a' OR '1'='1", "a line break": "iqn.2026-01.com:a\n", "a NUL": "iqn.2026-01.com:a\x00", "another script": "iqn.2026-01.com:\u0430", "no text": "iqn.2026-01.com:\xff",
		"224 bytes": "iqn.2026-12.a:" + strings.Repeat("x", 210), "megabytes": "iqn.2026-12.a:" + strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := handler.ParseIQN(in)
			var bad *handler.InvalidError
			if got != "" || !errors.As(err, &bad) {
				t.Fatalf("ParseIQN = %q, %v", got, err)
			}
			if len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("error = %q", err)
			}
		})
	}
}

func TestPortalsAreRefused(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	for _, address := range []string{
		" ", "a b", "a:3260", "[::1]", "::1%eth0", "fe80::1%1", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "::", "255.255.255.255", "224.0.0.1", "ff02::1", "a..b", ".a", "a.", "-a", "a'", `a"`, `a\b`, "a/b",
		"a\n", "a\x00", "\u0430.example", "a' OR 'x'='x", strings.Repeat("a", 64), strings.Repeat("a.", 200) + "a", "*", "$(calc)",
	} {
		for _, port := range []uint32{0, 3260} {
			_, err := n.call(t.Context(), "iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: address, TargetPort: port}})
			if status.Code(err) != codes.InvalidArgument || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("portal %.40q: %v", address, err)
			}
		}
	}
	for _, port := range []uint32{65536, 65536 + 3260, 1<<32 - 1} {
		_, err := n.call(t.Context(), "iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: fakehost.PortalAddress, TargetPort: port}})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("port %d: %v", port, err)
		}
	}
	if did := n.host.Ledger(); len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
}

func TestPortalsAreAccepted(t *testing.T) {
	for address, port := range map[string]uint32{"192.0.2.1": 0, "2001:db8::1": 3260, "san_1.example": 65535, "SAN": 1} {
		n := newNode(t, fakehost.Options{})
		request := &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: address, TargetPort: port}}
		if _, err := n.call(t.Context(), "iscsi", request); status.Code(err) != codes.NotFound { // asked of the host, which knows no such portal
			t.Errorf("portal %s: %v", address, err)
		}
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	s := handler.NewSecret("s3cret")
	if s.Reveal() != "s3cret" || s.IsEmpty() || s.String() != "[secret]" || s.GoString() != "[secret]" {
		t.Errorf("secret %s", s)
	}
}
