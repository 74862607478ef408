package hunt

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Fields are the values of a record by the names of their places: what.targets.kind has those of all targets. Numbers and truth
// are text, as JSON writes them.
type Fields map[string][]string

// maxNesting bounds what one line costs, which is of bounded length: names grow with the depth. No rule asks for anything so deep, and all
// that lies above is there, however much of it a caller sent.
const maxNesting = 32

// Flatten makes Fields of a JSON object.
func Flatten(doc []byte) (Fields, error) {
	var v map[string]any
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	f := Fields{}
	f.add("", v, 0)
	return f, nil
}

func (f Fields) add(name string, v any, depth int) {
	if depth > maxNesting {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if name != "" {
				key = name + "." + key
			}
			f.add(key, value, depth+1)
		}
	case []any:
		for _, value := range v {
			f.add(name, value, depth+1)
		}
	case string:
		f[name] = append(f[name], v)
	case json.Number:
		f[name] = append(f[name], v.String())
	case bool:
		f[name] = append(f[name], strconv.FormatBool(v))
	}
}

// first is the first value, or "".
func (f Fields) first(name string) string {
	if len(f[name]) == 0 {
		return ""
	}
	return f[name][0]
}
