package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readJSON reads objects that follow one another. isJSON is false if the text is no JSON from the first
// object on, as a YAML file may be that begins with a brace.
func (b bounds) readJSON(file string, data []byte) (found []Object, faults []Fault, isJSON bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	line, counted := 1, int64(0) // the line of the byte up to which lines are counted
	for n := 1; ; n++ {
		var doc json.RawMessage
		// The decoder stops behind the previous value; the blanks before the next are not part of it.
		begin := dec.InputOffset()
		begin += int64(len(data[begin:]) - len(bytes.TrimLeft(data[begin:], " \t\r\n")))
		line, counted = line+bytes.Count(data[counted:begin], []byte("\n")), begin
		place := Place{File: file, Document: n, Line: line}
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return found, faults, true
		}
		if err != nil {
			if n == 1 || bytes.Contains(data, []byte("\n---")) {
				return nil, nil, false
			}
			return found, append(faults, Fault{place, err}), true
		}
		if n > b.objects || len(found)+len(faults) > b.objects {
			return found, append(faults, Fault{place, b.tooMany()}), true
		}
		if err := noDuplicates(doc); err != nil {
			faults = append(faults, Fault{place, err})
			continue
		}
		o, f := b.objectsOf(place, doc, 0)
		found, faults = append(found, o...), append(faults, f...)
	}
}

// noDuplicates refuses an object that has a key twice: which of the two counts depends on the reader.
func noDuplicates(doc []byte) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	type level struct {
		keys  map[string]bool // nil in a list
		isKey bool            // the next token is a key
	}
	var stack []level
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			stack = stack[:len(stack)-1]
		} else if n := len(stack); n > 0 && stack[n-1].isKey {
			key, _ := token.(string)
			if stack[n-1].keys[key] {
				return fmt.Errorf("key %q twice in one object, the second at byte %d of the document", key, dec.InputOffset())
			}
			stack[n-1].keys[key] = true
			stack[n-1].isKey = false
			continue
		} else if ok {
			next := level{}
			if delim == '{' {
				next = level{keys: map[string]bool{}, isKey: true}
			}
			stack = append(stack, next)
			continue
		}
		// A value has ended: in an object a key comes next.
		if n := len(stack); n > 0 {
			stack[n-1].isKey = stack[n-1].keys != nil
		}
	}
}
