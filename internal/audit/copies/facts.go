package copies

import (
	"bytes"
	"encoding/json"
)

// attributePrefix stands before the path that a field has in the record. Others send to the same collector.
const attributePrefix = "pipeguard."

// fact is one field of a record.
type fact struct {
	attribute, text string
	isNumber        bool
}

// path is where the field lies in the record.
func (f *fact) path() string { return f.attribute[len(attributePrefix):] }

// facts are the fields of a record that events and attributes are made of.
type facts struct {
	list    []fact
	isWhole bool // the line is an object as the log writes them
}

// paths are the fields by which records of many nodes are searched: who, what, allowed or not, how it ended. Everything else is
// in the raw line.
var paths = func() map[string]string {
	m := map[string]string{} // to the attribute of OpenTelemetry
	for _, p := range []string{
		"seq", "type", "stage", "time", "session", "id", "intent_seq",
		"log.cause", "log.fault", "log.lost", "log.orphaned", "log.torn_bytes",
		"who.assurance", "who.process.pid", "who.process.exe", "who.user.sid", "who.user.name", "who.pod.ns", "who.pod.name", "who.pod.uid", "who.pod.sa",
		"who.container.id", "who.container.image", "who.container.host_process", "who.host", "who.doubt",
		"what.pipe", "what.group", "what.version", "what.method", "what.full_method", "what.verb",
		"decision.effect", "decision.reason", "decision.rule", "decision.mode", "decision.policy.name", "decision.policy.rev",
		"outcome.result", "outcome.code", "outcome.error", "outcome.count", "outcome.latency_us",
		"corr.conn", "where.node",
	} {
		m[p] = attributePrefix + p
	}
	return m
}()

// factsOf reads a line. Of several fields of one name the first counts; the log writes each once.
func factsOf(line []byte) (f facts) {
	f.list = make([]fact, 0, 32)
	f.isWhole = scan(line, func(path, raw []byte) {
		name, ok := paths[string(path)]
		if !ok || f.find(string(path)) != nil {
			return
		}
		v := fact{attribute: name}
		switch {
		case isPlain(raw):
			v.text = string(raw[1 : len(raw)-1])
		case raw[0] == '"':
			if json.Unmarshal(raw, &v.text) != nil { // which also replaces what is no UTF-8
				return
			}
		case raw[0] == '[' || raw[0] == '{' || !json.Valid(raw):
			return
		default:
			v.text, v.isNumber = string(raw), raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
		}
		f.list = append(f.list, v)
	})
	return f
}

// isPlain says that raw is a string that means what stands between its quotes.
func isPlain(raw []byte) bool {
	if raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 {
		return false
	}
	for _, c := range raw {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func (f *facts) find(path string) *fact {
	for i := range f.list {
		if f.list[i].path() == path {
			return &f.list[i]
		}
	}
	return nil
}

func (f *facts) has(path string) bool { return f.find(path) != nil }

// text returns a field, empty if the record has none.
func (f *facts) text(path string) string {
	if v := f.find(path); v != nil {
		return v.text
	}
	return ""
}
