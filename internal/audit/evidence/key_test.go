package evidence

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

func TestAKeyNeverPrintsItsSecret(t *testing.T) {
	k := newKey(t, origin)
	secret := strings.SplitN(strings.TrimSpace(string(k.Secret())), "+", 5)[4]
	asJSON, err := json.Marshal(map[string]any{"key": k, "o": []*Key{k}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(asJSON), k.String(), fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s %q %x %d", k, k, k, k, k, k, k), fmt.Sprintf("%+v", Options{Keys: []*Key{k}}), fmt.Sprintf("%v", signer{k, algLog, time.Time{}}),
		errors.Join(func() error { _, err := ParseKey([]byte(string(k.Secret()) + "x")); return err }()).Error(),
		func() string { _, err := ParseKeys(string(k.Secret())); return err.Error() }(),
	} {
		if strings.Contains(text, secret[:20]) || strings.Contains(text, fmt.Sprintf("%x", k.private.Seed())[:16]) {
			t.Errorf("the secret is in %q", text)
		}
	}
	again, err := ParseKey(k.Secret())
	if err != nil || !again.private.Equal(k.private) || again.LogKey() != k.LogKey() {
		t.Errorf("read again: %v", err)
	}
	if v, err := note.NewVerifier(k.LogKey()); err != nil || v.Name() != origin {
		t.Errorf("golang.org/x/mod/sumdb/note does not take the verifier key: %v", err)
	}
}

func TestPrivateKeysThatOthersCanReadAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	k := newKey(t, origin)
	if err := WriteKey(file, k); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(file); err != nil {
		t.Errorf("of mode 0600: %v", err)
	}
	if err := WriteKey(file, newKey(t, origin)); err == nil {
		t.Error("a key was overwritten")
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644, 0o610} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadKey(file); err == nil {
			t.Errorf("mode %#o was taken", mode)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(link); err == nil {
		t.Error("a link was taken")
	}
}

func TestInvalidVerifierKeysAreRefused(t *testing.T) {
	good := newKey(t, origin).LogKey()
	data, err := base64.StdEncoding.DecodeString(strings.SplitN(good, "+", 3)[2]) // a name, its hash, and the base64 of type and key, which may hold a + too
	if err != nil {
		t.Fatal(err)
	}
	unknown := append([]byte{0x7f}, data[1:]...)
	hash := sha256.Sum256(append([]byte(origin+"\n"), unknown...))
	for name, text := range map[string]string{
		"nothing": "", "comments alone": "# x\n\n", "a word": "x", "a private key": string(newKey(t, "a").Secret()), "cut short": good[:len(good)-4],
		"another name": strings.Replace(good, "node-1", "node-2", 1), "an unknown type": fmt.Sprintf("%s+%x+%s", origin, hash[:4], base64.StdEncoding.EncodeToString(unknown)), "one of two": good + "\nx\n",
	} {
		if k, err := ParseKeys(text); err == nil {
			t.Errorf("%s: %v", name, k.Describe())
		}
	}
	if k, err := ParseKeys("# the log\n" + good + "\r\n\n" + good + "\n"); err != nil || len(k.all) != 1 {
		t.Errorf("%v %v", k.Describe(), err)
	}
	for _, name := range []string{"", "a b", "a+b", "a\nb", "a\x1bb", "a\u202eb", "\xff", strings.Repeat("x", 513)} {
		if _, err := NewKey(name); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
}

func TestALogIsVerifiedAcrossARotationOfItsKey(t *testing.T) {
	m := newLog(t, Options{})
	oldKey := m.key
	m.begin(0)
	m.records(2)
	m.close()
	m.key = newKey(t, origin)
	m.open(Options{Keys: []*Key{m.key, oldKey}}) // both sign
	m.records(1)
	m.close()
	m.open(Options{})
	m.records(1)
	m.close()
	outside := []string{m.outside()}
	both := keysOf(t, oldKey.LogKey(), m.key.LogKey())
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: outside}); r.Verdict != VerdictOK || r.OwnCovered != 5 {
		t.Errorf("both keys: %s %v %v", r.Verdict, r.Fault, r.Incomplete)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: outside}); r.Verdict != VerdictIncomplete || !strings.Contains(r.Incomplete[0], "not signed by any given key") {
		t.Errorf("the new key alone: %s %v %v", r.Verdict, r.Fault, r.Incomplete)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: keysOf(t, oldKey.LogKey())}); r.Verdict != VerdictIncomplete {
		t.Errorf("the old key alone: %s %v", r.Verdict, r.Fault)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: keysOf(t, newKey(t, origin).LogKey())}); r.Verdict != VerdictIncomplete || r.Checkpoints != 0 {
		t.Errorf("a stranger's key: %s %v", r.Verdict, r.Fault)
	}
}

func TestProofsHoldForEachRecordAndForNoOther(t *testing.T) {
	m := sample(t)
	for seq := range m.seq {
		proof, err := Prove(t.Context(), VerifyOptions{Dir: m.dir, Keys: m.keys()}, seq+1)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := CheckProof(proof, m.keys()); err != nil || p.Seq != seq+1 || p.Size != 15 {
			t.Fatalf("record %d: %+v %v", seq+1, p, err)
		}
		if _, err := CheckProof(proof, keysOf(t, newKey(t, origin).LogKey())); err == nil {
			t.Fatal("it holds by another key")
		}
		for i := 0; i < len(proof); i += 7 {
			bent := append([]byte{}, proof...)
			bent[i] ^= 1
			if p, err := CheckProof(bent, m.keys()); err == nil && (p.Seq != seq+1 || p.Size != 15) {
				t.Fatalf("record %d, byte %d: %+v", seq+1, i, p)
			}
		}
	}
	if _, err := Prove(t.Context(), VerifyOptions{Dir: m.dir, Keys: m.keys()}, 16); err == nil {
		t.Error("a record that is not there was proven")
	}
	forge(t, m, 3)
	if _, err := Prove(t.Context(), VerifyOptions{Dir: m.dir, Keys: m.keys()}, 3); !IsFault(err) {
		t.Errorf("a record of another log was proven: %v", err)
	}
}

func FuzzCheckpointsAndNotes(f *testing.F) {
	k, err := NewKey(origin)
	if err != nil {
		f.Fatal(err)
	}
	raw, err := sign(Head{origin, 3, Leaf([]byte("x"))}, time.Unix(1795286005, 0), k)
	if err != nil {
		f.Fatal(err)
	}
	keys := keysOf(f, k.LogKey())
	f.Add(raw)
	f.Add(append(append([]byte{}, raw...), append([]byte{'\n'}, raw...)...))
	f.Add(request{3, nil, raw}.encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := keys.Open(text); err == nil && (c.Origin != origin || c.Size != 3 || c.Root != Leaf([]byte("x"))) {
			t.Errorf("a checkpoint that was never signed: %+v", c)
		}
		if h, err := ParseHead(string(text)); err == nil && !strings.HasPrefix(string(text), h.text()) {
			t.Errorf("%q is read as %q", text, h.text())
		}
		if r, err := parseRequest(text); err == nil && string(r.encode()) != string(text) {
			t.Errorf("%q is read as %q", text, r.encode())
		}
		n := 0
		for _, err := range Notes(strings.NewReader(string(text))) {
			if n++; n > len(text) || err != nil && n > len(text)+1 {
				t.Fatal("more notes than bytes")
			}
		}
		_, _ = CheckProof(text, keys)
		_, _ = parseStart(text)
		var r Record
		if parseRecord(text, &r) == nil && (r.Seq == 0 || len(r.prev) != segment.PrevLength) {
			t.Errorf("%q is a record %+v", text, r)
		}
	})
}
