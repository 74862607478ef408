package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// manifest is the file .manifest: OPA's words, with ours in the metadata. All of it is signed. Its fields are in the order of their names, as hashes want them.
type manifest struct {
	Metadata    metadata `json:"metadata"`
	RegoVersion int      `json:"rego_version"`
	Revision    string   `json:"revision"`
	Roots       []string `json:"roots"`
}

type metadata struct {
	Audience        string `json:"audience"`
	ExpiresAt       string `json:"expiresAt"`
	IssuedAt        string `json:"issuedAt"`
	MinimumRevision string `json:"minimumRevision"`
	PolicyRevision  string `json:"policyRevision"`
	Schema          string `json:"schema"`
}

// Schema is the form of the bundle, so that another one is refused and not half understood. The first had data beside the
// access list, which said a second time who is named.
const Schema = "pipeguard.dev/bundle/v2"

func (b Bundle) manifest() manifest {
	return manifest{
		Revision: strconv.FormatUint(b.Revision, 10), Roots: roots, RegoVersion: 1,
		Metadata: metadata{
			Audience: b.Audience, IssuedAt: stamp(b.IssuedAt), ExpiresAt: stamp(b.ExpiresAt),
			MinimumRevision: strconv.FormatUint(b.MinimumRevision, 10), PolicyRevision: b.PolicyRevision, Schema: Schema,
		},
	}
}

// files are the bundle's, without the signatures.
func (b Bundle) files() (map[string][]byte, error) {
	var access map[string]any
	if err := json.Unmarshal(b.ACL, &access); err != nil || access == nil {
		return nil, fmt.Errorf("the access list is no JSON object: %w", err)
	}
	out := map[string][]byte{}
	for name, value := range map[string]any{manifestFile: b.manifest(), aclFile: json.RawMessage(b.ACL)} {
		text, err := encode(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if name != manifestFile { // to the form that decode takes
			if text, err = canonical(text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		out[name] = text
	}
	for name, text := range b.Modules {
		out[modulesDir+name] = []byte(text)
	}
	return out, nil
}

// fromFiles is the reverse of files, for files whose hashes are signed.
func fromFiles(files map[string][]byte) (Bundle, error) {
	for _, name := range []string{manifestFile, aclFile} {
		if _, ok := files[name]; !ok {
			return Bundle{}, fmt.Errorf("there is no %s", name)
		}
	}
	var m manifest
	if err := decode(files[manifestFile], &m); err != nil {
		return Bundle{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Metadata.Schema != Schema || m.RegoVersion != 1 || !slices.Equal(m.Roots, roots) {
		return Bundle{}, fmt.Errorf("%s: schema %q, Rego %d, roots %q: want %q, 1 and %q", manifestFile, m.Metadata.Schema, m.RegoVersion, m.Roots, Schema, roots)
	}
	b := Bundle{Audience: m.Metadata.Audience, PolicyRevision: m.Metadata.PolicyRevision, Modules: map[string]string{}, ACL: files[aclFile]}
	var err error
	if b.Revision, err = number(m.Revision); err != nil {
		return Bundle{}, fmt.Errorf("%s: revision: %w", manifestFile, err)
	}
	if b.MinimumRevision, err = number(m.Metadata.MinimumRevision); err != nil {
		return Bundle{}, fmt.Errorf("%s: minimum revision: %w", manifestFile, err)
	}
	if b.IssuedAt, err = when(m.Metadata.IssuedAt); err != nil {
		return Bundle{}, fmt.Errorf("%s: issued at: %w", manifestFile, err)
	}
	if b.ExpiresAt, err = when(m.Metadata.ExpiresAt); err != nil {
		return Bundle{}, fmt.Errorf("%s: expires at: %w", manifestFile, err)
	}
	var access map[string]any
	if err := decode(files[aclFile], &access); err != nil {
		return Bundle{}, fmt.Errorf("%s: %w", aclFile, err)
	}
	if access == nil {
		return Bundle{}, fmt.Errorf("%s: want an object", aclFile)
	}
	for name, text := range files {
		if module, ok := strings.CutPrefix(name, modulesDir); ok {
			b.Modules[module] = string(text)
		}
	}
	return b, b.check()
}

func number(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err == nil && strconv.FormatUint(n, 10) != s {
		err = fmt.Errorf("%q is another spelling of %d", s, n)
	}
	return n, err
}

// when reads the one spelling of a time that stamp writes.
func when(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err == nil && stamp(t) != s {
		err = fmt.Errorf("%q is another spelling of %s", s, stamp(t))
	}
	return t.UTC(), err
}

// canonical is the form of a JSON value that decode takes.
func canonical(text []byte) ([]byte, error) {
	var v any
	if err := unmarshal(text, &v); err != nil {
		return nil, err
	}
	return encode(v)
}
