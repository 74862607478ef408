package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	strictjson "sigs.k8s.io/json"
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
	var value any
	strict, err := strictjson.UnmarshalStrict(doc, &value)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	return err
}
