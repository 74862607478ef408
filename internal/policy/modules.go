package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Modules are policies in source form, with the data that they read.
type Modules struct {
	// Files holds Rego by relative path. A name that ends in _test.rego is a test and does not decide.
	Files map[string]string
	// Data becomes data.* for the policies. It must be encodable as JSON.
	Data map[string]any
	// Companion goes with the snapshot that these modules become: what a caller needs beside the policies and must never
	// mix with another revision's. It is not hashed, so it must follow from Files and Data, and nothing may change it any more.
	Companion any
	// Checks must hold beside Options.Checks before these modules decide. They follow from Files and Data as well.
	Checks []Check
	// Base is what was there before something was added to it, with its tests; Files then hold it without them. It must
	// compile and pass its tests by itself: a test of the base says what the base decides, and an addition may well refuse more.
	// Every other file is an addition, and cannot change what the rules of the base mean: see additions.
	Base *Modules
	// InputSchema is the JSON Schema of the input. No module but those of the Base may read a field that is not in it: an
	// undefined name makes a refusal vanish. Nil means that anything may be read.
	InputSchema []byte
	// Gone are documents that there were once, by path without data, such as pipeguard.policies, and what to read in place of each. No module that decides
	// may read one, not of the Base either.
	Gone map[string]string
	// Closed are documents of the Data, by path without data, all of whose names are there. A module that decides reads them by names that are there, written out.
	Closed []string
	// Owner names the author of an added file, by its path: an author's helpers are kept apart from those of others. Nil
	// means that one author added all files.
	Owner func(file string) string
}

// WithoutTests returns the files that decide.
func (m Modules) WithoutTests() map[string]string {
	files := maps.Clone(m.Files)
	maps.DeleteFunc(files, func(name, _ string) bool { return isTestFile(name) })
	return files
}

// mayBeUntested is true of additions without tests of their own.
func (m Modules) mayBeUntested() bool {
	return m.Base != nil && !slices.ContainsFunc(m.names(), isTestFile)
}

func isTestFile(name string) bool { return strings.HasSuffix(name, "_test.rego") }

func (m Modules) names() []string { return slices.Sorted(maps.Keys(m.Files)) }

func (m Modules) isBase(file string) bool {
	if m.Base == nil {
		return false
	}
	_, ok := m.Base.Files[file]
	return ok
}

// inOrder are the names of all files, those of the base first: what is too much, or there a second time, is so in what was added.
func (m Modules) inOrder() []string {
	names := m.names()
	added := slices.DeleteFunc(slices.Clone(names), m.isBase)
	return append(slices.DeleteFunc(names, func(name string) bool { return !m.isBase(name) }), added...)
}

// checkSize reports every limit that m exceeds.
func (m Modules) checkSize(l Limits) []Problem {
	var out []Problem
	if len(m.Files) > l.Files {
		out = append(out, Problem{Code: CodeLimit, Message: fmt.Sprintf("%d modules, and at most %d are taken", len(m.Files), l.Files)})
	}
	total := 0
	for _, name := range m.names() {
		size := len(m.Files[name])
		total += size
		if size > l.FileBytes {
			out = append(out, Problem{File: name, Code: CodeLimit, Message: fmt.Sprintf("%d bytes, and a module has at most %d", size, l.FileBytes)})
		}
	}
	if total > l.TotalBytes {
		out = append(out, Problem{Code: CodeLimit, Message: fmt.Sprintf("%d bytes in all modules, and at most %d are taken", total, l.TotalBytes)})
	}
	return out
}

// document is data in the two forms that are needed: text to hash, and OPA's own form to evaluate, which spares
// every evaluation the conversion.
type document struct {
	text   []byte
	object ast.Object
}

func newDocument(data map[string]any, limit int) (document, error) {
	if data == nil {
		data = map[string]any{}
	}
	text, err := json.Marshal(data) // sorts keys: the same data has the same hash
	if err != nil {
		return document{}, fmt.Errorf("encode data: %w", err)
	}
	if len(text) > limit {
		return document{}, fmt.Errorf("data has %d bytes as JSON, and at most %d are taken", len(text), limit)
	}
	value, err := ast.ValueFromReader(bytes.NewReader(text))
	if err != nil {
		return document{}, fmt.Errorf("convert data: %w", err)
	}
	object, ok := value.(ast.Object)
	if !ok {
		return document{}, fmt.Errorf("data is a %s, want an object", ast.ValueName(value))
	}
	return document{text: text, object: object}, nil
}

// revision hashes what decides and what tests it. Every part goes in with its length, so that no text can move
// from one part to another without changing the hash.
func (m Modules) revision(data document) string {
	h := sha256.New()
	m.writeFiles(h)
	writePart(h, nil) // no file has an empty name
	writePart(h, data.text)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (m Modules) writeFiles(h hash.Hash) {
	for _, name := range m.names() {
		writePart(h, []byte(name))
		writePart(h, []byte(m.Files[name]))
	}
}

func writePart(h hash.Hash, p []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(p)))
	h.Write(n[:])
	h.Write(p)
}
