package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
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
		Revision: digits(b.Revision), Roots: roots, RegoVersion: 1,
		Metadata: metadata{
			Audience: b.Audience, IssuedAt: stamp(b.IssuedAt), ExpiresAt: stamp(b.ExpiresAt),
			MinimumRevision: digits(b.MinimumRevision), PolicyRevision: b.PolicyRevision, Schema: Schema,
		},
	}
}

// files are the bundle's, without the signatures.
func (b Bundle) files() (map[string][]byte, error) {
	var document map[string]any
	if err := json.Unmarshal(b.ACL, &document); err != nil || document == nil {
		return nil, fmt.Errorf("the access list is no JSON object: %w", err)
	}
	head, err := encode(b.manifest())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	list, err := canonical(b.ACL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", aclFile, err)
	}
	out := map[string][]byte{manifestFile: head, aclFile: list}
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
	if schema := schemaOf(files[manifestFile]); schema != "" && schema != Schema { // its words would be called unknown
		return Bundle{}, fmt.Errorf("%s: %w", manifestFile, access.SchemaFault(schema, []string{Schema}))
	}
	var m manifest
	if err := decode(files[manifestFile], &m); err != nil {
		return Bundle{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Metadata.Schema != Schema || m.RegoVersion != 1 || !slices.Equal(m.Roots, roots) {
		return Bundle{}, fmt.Errorf("%s: schema %q, Rego %d, roots %q: want %q, 1 and %q", manifestFile, m.Metadata.Schema, m.RegoVersion, m.Roots, Schema, roots)
	}
	b := Bundle{Audience: m.Metadata.Audience, PolicyRevision: m.Metadata.PolicyRevision, Modules: map[string]string{}, ACL: files[aclFile]}
	var faults [4]error
	number := func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }
	when := func(s string) (time.Time, error) { t, err := time.Parse(time.RFC3339, s); return t.UTC(), err }
	b.Revision, faults[0] = spelled("revision", m.Revision, number, digits)
	b.MinimumRevision, faults[1] = spelled("minimum revision", m.Metadata.MinimumRevision, number, digits)
	b.IssuedAt, faults[2] = spelled("issued at", m.Metadata.IssuedAt, when, stamp)
	b.ExpiresAt, faults[3] = spelled("expires at", m.Metadata.ExpiresAt, when, stamp)
	if err := errors.Join(faults[:]...); err != nil {
		return Bundle{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	var document map[string]any
	if err := decode(files[aclFile], &document); err != nil {
		return Bundle{}, fmt.Errorf("%s: %w", aclFile, err)
	}
	if document == nil {
		return Bundle{}, fmt.Errorf("%s: want an object", aclFile)
	}
	for name, text := range files {
		if module, ok := strings.CutPrefix(name, modulesDir); ok {
			b.Modules[module] = string(text)
		}
	}
	return b, b.check()
}

// schemaOf is the form that a manifest says it has; empty if it says none.
func schemaOf(text []byte) string {
	var m struct{ Metadata struct{ Schema string } }
	if json.Unmarshal(text, &m) != nil {
		return ""
	}
	return m.Metadata.Schema
}

// spelled reads a text as write would have written it. An error names the field.
func spelled[T any](field, text string, read func(string) (T, error), write func(T) string) (T, error) {
	v, err := read(text)
	if err == nil && write(v) != text {
		err = fmt.Errorf("%q is another spelling of %s", text, write(v))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", field, err)
	}
	return v, err
}

func digits(n uint64) string { return strconv.FormatUint(n, 10) }

// canonical is the form of a JSON value that decode takes. Numbers keep their text.
func canonical(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return encode(v)
}
