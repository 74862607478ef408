package token

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
)

// FuzzToken looks for a text that is taken for a token although nobody signed it, and for one whose parts say what they may not.
func FuzzToken(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	k, err := parseKeys(clusterKeys(f))
	if err != nil {
		f.Fatal(err)
	}
	known := []string{sign(f, rsaHeader(), claimsAt(now), clusterRSA()), sign(f, ecHeader(), claimsAt(now), clusterEC())}
	for _, text := range append(slices.Clone(known), "", "..", "a.b.c", known[0]+".", strings.Repeat(".", 100)) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, _, refusal := fromMetadata(metadata.Pairs("authorization", "Bearer "+text)); refusal == nil && string(got) != text {
			t.Errorf("%q was read as %q", text, string(got))
		}
		parsed, refusal := parse(Secret(text))
		if (parsed == nil) == (refusal == nil) {
			t.Fatalf("got both or neither of a token and a refusal")
		}
		if refusal != nil {
			return
		}
		id := parsed.claims.identity()
		for _, name := range []string{id.Namespace, id.ServiceAccount, id.PodName, id.PodUID, id.Node} {
			if !isName(name, maxName) {
				t.Errorf("the name %q came through", name)
			}
		}
		if k.verify(parsed) == nil && !slices.Contains(known, text) {
			t.Errorf("%q is taken for signed", text)
		}
	})
}

// FuzzKeys looks for a document that stops the proxy or gives a key that cannot be one.
func FuzzKeys(f *testing.F) {
	f.Add(clusterKeys(f))
	f.Add([]byte(`{"keys":[{"kty":"RSA","kid":"a","n":"AQ","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := parseKeys(text)
		if (k == nil) == (err == nil) {
			t.Fatal("got both or neither of keys and an error")
		}
		if err == nil && (len(k.byID) == 0 || k.byID[""] != nil) {
			t.Error("a document without keys, or a key without a name, was taken")
		}
	})
}
