package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	opa "github.com/open-policy-agent/opa/v1/bundle"
)

func TestABundleComesBackAsItWasBuilt(t *testing.T) {
	key := newTestKey(t)
	b, seal, err := pin(t, key).Verify(build(t, key))
	if err != nil {
		t.Fatal(err)
	}
	want := sample()
	if b.Revision != want.Revision || b.Audience != want.Audience || !b.IssuedAt.Equal(want.IssuedAt) || !b.ExpiresAt.Equal(want.ExpiresAt) ||
		b.PolicyRevision != want.PolicyRevision || !maps.Equal(b.Modules, want.Modules) {
		t.Errorf("got %+v", b)
	}
	if diff := cmp.Diff(`{"policies":[{"n":12345678901234567890,"name":"<a> & b"}],"schema":"x"}`, string(b.ACL)); diff != "" {
		t.Error(diff)
	}
	if seal.Key != key.ID() || len(seal.Digest) != 64 {
		t.Errorf("seal %+v", seal)
	}
}

func TestEqualBundlesHaveEqualBytes(t *testing.T) {
	key := newTestKey(t)
	one := build(t, key)
	for range 3 {
		if !bytes.Equal(one, build(t, key, func(b *Bundle) {
			b.ACL = []byte(`{"policies":[{"n":12345678901234567890,"name":"<a> & b"}], "schema":"x"}`)
			b.IssuedAt = b.IssuedAt.In(time.FixedZone("", 3600)).Add(time.Millisecond)
		})) {
			t.Fatal("other bytes")
		}
	}
	if bytes.Equal(one, build(t, key, revision(8))) {
		t.Error("the revision makes no difference")
	}
}

// OPA's own reader is the other opinion on what a signed bundle is.
func TestOPATakesOurBundles(t *testing.T) {
	key := newTestKey(t)
	read := func(raw []byte, by *Key) error {
		config := opa.NewVerificationConfig(map[string]*opa.KeyConfig{string(by.ID()): {Key: string(by.PublicPEM()), Algorithm: algorithm}}, "", "", nil)
		b, err := opa.NewCustomReader(opa.NewTarballLoader(bytes.NewReader(raw))).WithBundleVerificationConfig(config).Read()
		if err == nil && (b.Manifest.Revision != "7" || len(b.Modules) != 1 || b.Data["acl"] == nil) {
			t.Errorf("manifest %v, %d modules", b.Manifest, len(b.Modules))
		}
		return err
	}
	raw := build(t, key)
	if err := read(raw, key); err != nil {
		t.Error(err)
	}
	if read(raw, newTestKey(t)) == nil {
		t.Error("another key will do")
	}
	if read(repack(t, raw, func(f map[string][]byte) { f[aclFile] = []byte(`{}`) }), key) == nil {
		t.Error("another access list will do")
	}
}

// An unsigned file is hashed and not parsed: parsed, 12 MB of nested JSON, which is 16 KB packed, take a gigabyte.
func TestWhatIsNotSignedCostsNoMoreThanItsBytes(t *testing.T) {
	key := newTestKey(t)
	raw, keys := build(t, key), pin(t, key)
	deep := strings.Repeat(`{"":`, 4000) + "0" + strings.Repeat("}", 4000)
	for name, reason := range map[string]Reason{
		manifestFile: ReasonSignature, aclFile: ReasonSignature, "/policies/node.rego": ReasonSignature, signaturesFile: ReasonUnsigned,
	} {
		hostile := repack(t, raw, func(f map[string][]byte) {
			f[name] = []byte(`{"a":[` + strings.Repeat(deep+",", 1<<20/len(deep)) + `0]}`)
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := keys.Verify(hostile)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; ReasonOf(err) != reason || taken > 16<<20 {
			t.Errorf("%s: %v, and %d MB", name, err, taken>>20)
		}
	}
}

func TestTheSignaturesOfTheLargestBundleAreTaken(t *testing.T) {
	key := newTestKey(t)
	raw := build(t, key, func(b *Bundle) {
		for i := range MaxFiles - 4 { // the manifest, the access list, the signatures and the module that is there
			b.Modules[fmt.Sprintf("%s%03d.rego", strings.Repeat("m", longestName-8), i)] = "package x"
		}
	})
	if b, _, err := pin(t, key).Verify(raw); err != nil || len(b.Modules) != MaxFiles-3 {
		t.Errorf("%d modules, %v", len(b.Modules), err)
	}
}

func TestVerifyTakesEitherKeyDuringARotation(t *testing.T) {
	before, after := newTestKey(t), newTestKey(t)
	for _, key := range []*Key{before, after} {
		if _, seal, err := pin(t, before, after).Verify(build(t, key)); err != nil || seal.Key != key.ID() {
			t.Errorf("%v, %v", seal, err)
		}
	}
	if _, _, err := pin(t, after).Verify(build(t, before)); ReasonOf(err) != ReasonKey {
		t.Errorf("the key that was taken away: %v", err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	key, stranger := newTestKey(t), newTestKey(t)
	raw := build(t, key)
	files := filesOf(t, sample())
	tamper := func(change func(map[string][]byte)) []byte { return repack(t, raw, change) }
	with := func(name, text string) map[string][]byte {
		f := maps.Clone(files)
		f[name] = []byte(text)
		return f
	}
	token := func(f map[string][]byte, k *Key) string {
		s, err := sign(f, k)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	valid := token(files, key)
	parts := strings.Split(valid, ".")
	headed := func(text string, k *Key) string { // signed by k, under any header
		head := encoding.EncodeToString([]byte(text))
		digest := sha256.Sum256([]byte(head + "." + parts[1]))
		r, s, err := ecdsa.Sign(rand.Reader, k.private, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		both := make([]byte, 64)
		r.FillBytes(both[:32])
		s.FillBytes(both[32:])
		return head + "." + parts[1] + "." + encoding.EncodeToString(both)
	}
	id := string(key.ID())
	mac := func() string {
		head := encoding.EncodeToString([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
		h := hmac.New(sha256.New, key.PublicPEM())
		h.Write([]byte(head + "." + parts[1]))
		return head + "." + parts[1] + "." + encoding.EncodeToString(h.Sum(nil))
	}
	signedManifest := func(old, now string) []byte {
		f := with(manifestFile, strings.Replace(string(files[manifestFile]), old, now, 1))
		if string(f[manifestFile]) == string(files[manifestFile]) {
			t.Fatalf("no %q in the manifest %s", old, files[manifestFile])
		}
		return resign(t, key, f, f)
	}
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	if _, err := zip.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	many := make([]tar.Header, MaxFiles+1)
	for i := range many {
		many[i] = tar.Header{Name: fmt.Sprintf("/policies/%d.rego", i), Mode: 0o600}
	}
	file := func(name string) []byte { return tarball(t, tar.Header{Name: name, Mode: 0o600, Size: 1}) }

	for name, c := range map[string]struct {
		raw  []byte
		want Reason
	}{
		"nothing":                     {nil, ReasonArchive},
		"text":                        {[]byte("apiVersion: v1"), ReasonArchive},
		"an archive without files":    {tarball(t), ReasonUnsigned},
		"half of it":                  {raw[:len(raw)/2], ReasonArchive},
		"without its last byte":       {raw[:len(raw)-1], ReasonArchive},
		"without its checksum":        {raw[:len(raw)-8], ReasonArchive},
		"bytes behind it":             {append(bytes.Clone(raw), 0), ReasonArchive},
		"a second archive behind it":  {append(bytes.Clone(raw), raw...), ReasonArchive},
		"no signatures":               {tamper(func(f map[string][]byte) { delete(f, signaturesFile) }), ReasonUnsigned},
		"an empty list of signatures": {withToken(t, files), ReasonUnsigned},
		"two signatures":              {withToken(t, files, valid, valid), ReasonUnsigned},
		"a plugin that verifies":      {tamper(func(f map[string][]byte) { f[signaturesFile] = []byte(`{"signatures":["` + valid + `"],"plugin":"x"}`) }), ReasonUnsigned},
		"signatures of unknown words": {tamper(func(f map[string][]byte) { f[signaturesFile] = []byte(`{"signatures":["` + valid + `"],"x":1}`) }), ReasonUnsigned},
		"signatures twice in a file": {tamper(func(f map[string][]byte) {
			f[signaturesFile] = []byte(`{"signatures":["a"],"signatures":["` + valid + `"]}`)
		}), ReasonUnsigned},
		"another key":                     {build(t, stranger), ReasonKey},
		"another key under the pinned id": {withToken(t, files, headed(`{"alg":"ES256","kid":"`+id+`"}`, stranger)), ReasonSignature},
		"no key id":                       {withToken(t, files, headed(`{"alg":"ES256"}`, key)), ReasonSignature},
		"an empty key id":                 {withToken(t, files, headed(`{"alg":"ES256","kid":""}`, key)), ReasonKey},
		"an unknown key id":               {withToken(t, files, headed(`{"alg":"ES256","kid":"es256:00"}`, key)), ReasonKey},
		"the algorithm none":              {withToken(t, files, headed(`{"alg":"none","kid":"`+id+`"}`, key)), ReasonSignature},
		"the public key as a secret":      {withToken(t, files, mac()), ReasonSignature},
		"another algorithm of the kind":   {withToken(t, files, headed(`{"alg":"ES384","kid":"`+id+`"}`, key)), ReasonSignature},
		"a key in the header":             {withToken(t, files, headed(`{"alg":"ES256","kid":"`+id+`","jwk":{}}`, key)), ReasonSignature},
		"a critical parameter":            {withToken(t, files, headed(`{"alg":"ES256","kid":"`+id+`","crit":["x"]}`, key)), ReasonSignature},
		"an algorithm in other case":      {withToken(t, files, headed(`{"ALG":"ES256","kid":"`+id+`"}`, key)), ReasonSignature},
		"no signature in the token":       {withToken(t, files, parts[0]+"."+parts[1]+"."), ReasonSignature},
		"a signature of zeros":            {withToken(t, files, parts[0]+"."+parts[1]+"."+encoding.EncodeToString(make([]byte, 64))), ReasonSignature},
		"a signature that is longer":      {withToken(t, files, parts[0]+"."+parts[1]+"."+encoding.EncodeToString(make([]byte, 72))), ReasonSignature},
		"a token of two parts":            {withToken(t, files, parts[0]+"."+parts[1]), ReasonUnsigned},
		"a token with padding":            {withToken(t, files, valid+"="), ReasonSignature},
		"the payload of another token":    {withToken(t, files, parts[0]+"."+strings.Split(token(with(aclFile, `{}`), key), ".")[1]+"."+parts[2]), ReasonSignature},
		"a signature over other files":    {resign(t, key, files, with(aclFile, `{"schema":"y"}`)), ReasonSignature},
		"a signature over fewer files":    {resign(t, key, files, map[string][]byte{manifestFile: files[manifestFile]}), ReasonUnsigned},
		"a signature over more files":     {resign(t, key, files, with("/policies/more.rego", "package x")), ReasonSignature},
		"a module that was changed":       {tamper(func(f map[string][]byte) { f["/policies/node.rego"][30] ^= 1 }), ReasonSignature},
		"a manifest that was changed": {tamper(func(f map[string][]byte) {
			f[manifestFile] = bytes.Replace(f[manifestFile], []byte(`"7"`), []byte(`"8"`), 1)
		}), ReasonSignature},
		"an access list that was changed": {tamper(func(f map[string][]byte) { f[aclFile] = bytes.Replace(f[aclFile], []byte("b"), []byte("c"), 1) }), ReasonSignature},
		"an access list with a blank":     {tamper(func(f map[string][]byte) { f[aclFile] = append(f[aclFile], ' ') }), ReasonSignature},
		"an access list, a key twice":     {tamper(func(f map[string][]byte) { f[aclFile] = append([]byte(`{"policies":0,`), f[aclFile][1:]...) }), ReasonSignature},
		"an access list that is no JSON":  {tamper(func(f map[string][]byte) { f[aclFile] = []byte("a: b") }), ReasonSignature},
		"data beside the access list":     {file("/data.json"), ReasonContent},
		"a file added":                    {tamper(func(f map[string][]byte) { f["/policies/z.rego"] = []byte("package z") }), ReasonUnsigned},
		"a file removed":                  {tamper(func(f map[string][]byte) { delete(f, "/policies/node.rego") }), ReasonSignature},
		"a file moved": {tamper(func(f map[string][]byte) {
			f["/policies/m.rego"] = f["/policies/node.rego"]
			delete(f, "/policies/node.rego")
		}), ReasonSignature},
		"a delta bundle":                   {file("/patch.json"), ReasonContent},
		"Wasm":                             {file("/policy.wasm"), ReasonContent},
		"a plan":                           {file("/plan.json"), ReasonContent},
		"a manifest of protocol buffers":   {file("/.manifest.pb"), ReasonContent},
		"data in YAML":                     {file("/data.yaml"), ReasonContent},
		"data at another place":            {file("/pipeguard/data.json"), ReasonContent},
		"a second manifest":                {file("/policies/.manifest"), ReasonContent},
		"a file that OPA would skip":       {file("/README.md"), ReasonContent},
		"a module at the root":             {file("/x.rego"), ReasonContent},
		"a name without a slash":           {file("data.json"), ReasonContent},
		"a name that climbs":               {file("/policies/../../x.rego"), ReasonContent},
		"a name that climbs Windows":       {file(`/policies/..\..\x.rego`), ReasonContent},
		"a name on another drive":          {file(`/policies/C:x.rego`), ReasonContent},
		"a name of dots":                   {file("/policies/..rego"), ReasonContent},
		"a name with two slashes":          {file("/policies//x.rego"), ReasonContent},
		"a name with a control character":  {file("/policies/x\n.rego"), ReasonContent},
		"a link":                           {tarball(t, tar.Header{Name: "/acl/data.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), ReasonContent},
		"a hard link":                      {tarball(t, tar.Header{Name: "/acl/data.json", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), ReasonContent},
		"a directory":                      {tarball(t, tar.Header{Name: "/policies/", Typeflag: tar.TypeDir}), ReasonContent},
		"a file twice":                     {tarball(t, tar.Header{Name: "/acl/data.json", Size: 1}, tar.Header{Name: "/acl/data.json", Size: 1}), ReasonContent},
		"zeros that unpack without end":    {bomb.Bytes(), ReasonSize},
		"a file that unpacks without end":  {tarball(t, tar.Header{Name: "/acl/data.json", Size: MaxUncompressed + 1}), ReasonSize},
		"many files":                       {tarball(t, many...), ReasonSize},
		"larger than a ConfigMap":          {make([]byte, MaxCompressed+1), ReasonSize},
		"signed, with a revision of 0":     {signedManifest(`"7"`, `"0"`), ReasonContent},
		"signed, with a revision of +7":    {signedManifest(`"7"`, `"+7"`), ReasonContent},
		"signed, with a revision of 07":    {signedManifest(`"7"`, `"07"`), ReasonContent},
		"signed, with a negative revision": {signedManifest(`"7"`, `"-7"`), ReasonContent},
		"signed, with the last revision":   {signedManifest(`"7"`, `"18446744073709551615"`), ReasonContent},
		"signed, in milliseconds":          {signedManifest(`"7"`, `"1767323045000"`), ReasonContent},
		"signed, with a later minimum":     {signedManifest(`"minimumRevision":"0"`, `"minimumRevision":"8"`), ReasonContent},
		"signed, without an audience":      {signedManifest(`"windows"`, `""`), ReasonContent},
		"signed, for everybody":            {signedManifest(`"windows"`, `"*"`), ReasonContent},
		"signed, of another form":          {signedManifest("bundle/v2", "bundle/v3"), ReasonContent},
		"signed, of the form before":       {signedManifest("bundle/v2", "bundle/v1"), ReasonContent},
		"signed, with other roots":         {signedManifest(`["acl","pipeguard"]`, `[""]`), ReasonContent},
		"signed, with Wasm":                {signedManifest(`"rego_version":1`, `"wasm":[],"rego_version":1`), ReasonContent},
		"signed, with a time of a zone":    {signedManifest("03:04:05Z", "03:04:05+00:00"), ReasonContent},
		"signed, ending before it begins":  {signedManifest("2026-01-03T", "2026-01-01T"), ReasonContent},
		"signed, ending in ten years":      {signedManifest("2026-01-03T", "2036-01-03T"), ReasonContent},
		"signed, without an access list": {func() []byte {
			f := maps.Clone(files)
			delete(f, aclFile)
			return resign(t, key, f, f)
		}(), ReasonContent},
		"signed, with data": {func() []byte {
			f := with("/data.json", `{}`)
			return resign(t, key, f, f)
		}(), ReasonContent},
		"signed, with an access list that is a list": {func() []byte {
			f := with(aclFile, `[]`)
			return resign(t, key, f, f)
		}(), ReasonContent},
	} {
		t.Run(name, func(t *testing.T) {
			b, seal, err := pin(t, key).Verify(c.raw)
			if ReasonOf(err) != c.want {
				t.Errorf("error %v, want reason %q", err, c.want)
			}
			if b.Revision != 0 || seal.Key != "" {
				t.Error("it is given out all the same")
			}
		})
	}
	for name, raw := range map[string][]byte{
		"an archive of the form before": file("/data.json"), "its manifest": signedManifest("bundle/v2", "bundle/v1"), "a later one": signedManifest("bundle/v2", "bundle/v3"),
	} {
		if _, _, err := pin(t, key).Verify(raw); err == nil || !strings.Contains(err.Error(), "pipeguard.dev/bundle/v2") {
			t.Errorf("%s: the form that is taken is not said: %v", name, err)
		}
	}
	if _, _, err := (Keys{}).Verify(raw); ReasonOf(err) != ReasonKey {
		t.Errorf("without keys: %v", err)
	}
}

func TestNoByteOfABundleCanBeChanged(t *testing.T) {
	key := newTestKey(t)
	keys, raw := pin(t, key), build(t, key)
	_, want, err := keys.Verify(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 0x10
		// Some bytes of the wrapping say nothing: the time and system in the header of the compressor.
		if _, seal, err := keys.Verify(changed); err == nil && seal != want {
			t.Errorf("byte %d: another content is taken", i)
		}
		if _, _, err := keys.Verify(raw[:i]); err == nil {
			t.Errorf("the first %d bytes are taken", i)
		}
	}
}

func TestCheckRefusesOthersAndOtherTimes(t *testing.T) {
	b := sample()
	for name, c := range map[string]struct {
		audience string
		now      time.Time
		want     Reason
	}{
		"in its time":                     {"windows", issued.Add(time.Hour), ""},
		"the last second":                 {"windows", issued.Add(life - time.Second), ""},
		"a clock that is a little behind": {"windows", issued.Add(-Skew), ""},
		"a clock that is far behind":      {"windows", issued.Add(-Skew - time.Second), ReasonNotYet},
		"the moment of its end":           {"windows", issued.Add(life), ReasonExpired},
		"long after":                      {"windows", issued.Add(10 * life), ReasonExpired},
		"no clock":                        {"windows", time.Time{}, ReasonNotYet},
		"another pool":                    {"linux", issued.Add(time.Hour), ReasonAudience},
		"a pool of another case":          {"Windows", issued.Add(time.Hour), ReasonAudience},
		"no pool":                         {"", issued.Add(time.Hour), ReasonAudience},
	} {
		if err := b.Check(c.audience, c.now); ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, want reason %q", name, err, c.want)
		}
	}
}

func TestBuildRefusesWhatNoNodeWouldTake(t *testing.T) {
	key := newTestKey(t)
	for name, change := range map[string]func(*Bundle){
		"no revision":                             func(b *Bundle) { b.Revision = 0 },
		"the last revision there is":              func(b *Bundle) { b.Revision = math.MaxUint64 },
		"a revision of a year and a second ahead": func(b *Bundle) { b.Revision = uint64(issued.Add(MaxAhead).Unix()) + 1 },
		"no audience":                             func(b *Bundle) { b.Audience = "" },
		"an audience of two lines":                func(b *Bundle) { b.Audience = "a\nb" },
		"no times":                                func(b *Bundle) { b.IssuedAt, b.ExpiresAt = time.Time{}, time.Time{} },
		"an end that is its begin":                func(b *Bundle) { b.ExpiresAt = b.IssuedAt },
		"a life of a year":                        func(b *Bundle) { b.ExpiresAt = b.IssuedAt.AddDate(1, 0, 0) },
		"no access list":                          func(b *Bundle) { b.ACL = nil },
		"an access list of null":                  func(b *Bundle) { b.ACL = []byte("null") },
		"an access list in YAML":                  func(b *Bundle) { b.ACL = []byte("a: b") },
		"a module that climbs":                    func(b *Bundle) { b.Modules["../x.rego"] = "" },
		"a module that is no Rego":                func(b *Bundle) { b.Modules["x.wasm"] = "" },
		"a revision of control characters":        func(b *Bundle) { b.PolicyRevision = "a\x00" },
		"more than a ConfigMap": func(b *Bundle) {
			noise := make([]byte, MaxCompressed)
			if _, err := rand.Read(noise); err != nil {
				t.Fatal(err)
			}
			b.Modules["x.rego"] = fmt.Sprintf("%x", noise)
		},
		"more than is unpacked": func(b *Bundle) { b.Modules["x.rego"] = strings.Repeat(" ", MaxUncompressed) },
	} {
		if raw, err := Build(sample(change), key); err == nil {
			t.Errorf("%s: %d bytes are built", name, len(raw))
		}
	}
}

func TestARevisionInMillisecondsIsRefusedInClearWords(t *testing.T) {
	key := newTestKey(t)
	_, err := Build(sample(revision(uint64(issued.UnixMilli()))), key)
	if want := "revision 1767323045000: want at most 1798859045, a year ahead of the seconds since 1970 at 2026-01-02T03:04:05Z, when it was issued"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if _, _, err := pin(t, key).Verify(build(t, key, revision(LatestRevision(issued)))); err != nil {
		t.Error(err)
	}
	n := newNode(t)
	k := n.start(t)
	far := filesOf(t, sample(revision(math.MaxUint64)))
	offer(t, k, resign(t, n.key, far, far), ReasonContent)
	if s := k.Status(); s.Oldest != 0 {
		t.Errorf("it is remembered: %+v", s)
	}
	offer(t, k, build(t, n.key), "")
}

func TestParseKeysRefuses(t *testing.T) {
	key := newTestKey(t)
	private, err := key.PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&other.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := string(key.PublicPEM())
	for name, text := range map[string]string{
		"nothing":             "",
		"blanks":              " \n",
		"text":                "es256:00",
		"text before":         "# key\n" + public,
		"text behind":         public + "x",
		"a private key":       string(private),
		"a key on P-384":      string(pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: der})),
		"a certificate":       strings.ReplaceAll(public, "PUBLIC KEY", "CERTIFICATE"),
		"a block of nothing":  string(pem.EncodeToMemory(&pem.Block{Type: pemPublic})),
		"a block with header": string(pem.EncodeToMemory(&pem.Block{Type: pemPublic, Headers: map[string]string{"a": "b"}, Bytes: der})),
		"half a block":        public[:len(public)/2],
		"too many":            strings.Repeat(public, maxKeys+1),
	} {
		if keys, err := ParseKeys([]byte(text)); err == nil {
			t.Errorf("%s: %v", name, keys)
		}
	}
	back, err := ParseKey(private)
	if err != nil || back.ID() != key.ID() {
		t.Errorf("the private key does not come back: %v", err)
	}
	if _, err := ParseKey([]byte(public)); err == nil {
		t.Error("a public key signs")
	}
	secret, err := key.private.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v", key, key, key); strings.Contains(s, new(big.Int).SetBytes(secret).String()) || !strings.Contains(s, string(key.ID())) {
		t.Errorf("printed as %s", s)
	}
}

// fixedKey is the same in each process: a fuzzer's workers are given what another has signed.
func fixedKey(t testing.TB) *Key {
	t.Helper()
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	key, err := newKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func FuzzVerify(f *testing.F) {
	key := fixedKey(f)
	keys, raw := pin(f, key), build(f, key)
	f.Add(raw)
	f.Add(raw[:len(raw)-4])
	f.Add(build(f, newTestKey(f)))
	f.Add(tarball(f, tar.Header{Name: "/acl/data.json", Size: 3}))
	_, want, err := keys.Verify(raw)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, seal, err := keys.Verify(raw)
		if err == nil && (seal != want || b.Revision != 7) {
			t.Errorf("a content that was not signed: %+v", b)
		}
		if err != nil && ReasonOf(err) == "" {
			t.Errorf("no reason: %v", err)
		}
	})
}

// What is inside an archive is fuzzed apart: no fuzzer finds its way through a compressor's checksum.
func FuzzVerifyFiles(f *testing.F) {
	key := fixedKey(f)
	keys := pin(f, key)
	files := filesOf(f, sample())
	token, err := sign(files, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(files[manifestFile], files[aclFile], token)
	f.Add([]byte(`{}`), []byte(`{"a":[1,1.0]}`), token+".")
	_, want, err := keys.Verify(withToken(f, files, token))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, manifest, access []byte, token string) {
		changed := map[string][]byte{"/policies/node.rego": files["/policies/node.rego"], manifestFile: manifest, aclFile: access}
		for name := range changed {
			if len(changed[name]) > 1<<20 {
				return
			}
		}
		b, seal, err := keys.Verify(withToken(t, changed, token))
		if err == nil && (seal != want || b.Revision != 7) {
			t.Errorf("a content that was not signed: %+v", b)
		}
		// The same, signed by the right key: it may be taken, and is then what it says.
		if signatures, err := sign(changed, key); err == nil {
			b, _, err := keys.Verify(withToken(t, changed, signatures))
			if err == nil && b.check() != nil {
				t.Errorf("taken, and unfit: %v", b.check())
			}
		}
	})
}

// What a later release adds comes with another form, and what is in that is not read before the form.
func TestABundleOfAnotherReleaseNamesTheEndToUpgrade(t *testing.T) {
	key := newTestKey(t)
	files := filesOf(t, sample())
	for name, c := range map[string]struct{ file, old, now, want string }{
		"a later form with more in it": {manifestFile, `"schema":"` + Schema + `"`, `"schema":"pipeguard.dev/bundle/v3","zone":"x"`, "a later release made it; upgrade this program"},
		"an earlier form":              {manifestFile, Schema, "pipeguard.dev/bundle/v1", "an earlier release made it; upgrade the webhook"},
		"another file":                 {"/pipes/data.json", "", "{}", "if a later release made it, upgrade this program"},
	} {
		f := maps.Clone(files)
		f[c.file] = []byte(strings.Replace(string(f[c.file]), c.old, c.now, 1))
		if _, _, err := pin(t, key).Verify(resign(t, key, f, f)); ReasonOf(err) != ReasonContent || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
