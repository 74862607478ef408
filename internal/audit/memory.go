package audit

import (
	"encoding/json"
	"reflect"

	"github.com/pipeguard/pipeguard/internal/audit/plainjson"
)

// Parts are parts of an Event that a reader may have no use for.
type Parts uint8

// The parts. What is none of them is always read.
const (
	PartLog Parts = 1 << iota
	PartWho
	PartWhat    // without the two below
	PartParams  // of PartWhat
	PartTargets // of PartWhat
	PartDecision
	PartCorr
	PartWhere

	AllParts Parts = 1<<iota - 1
)

var parts = map[reflect.Type]Parts{
	reflect.TypeFor[*Log](): PartLog, reflect.TypeFor[*Who](): PartWho, reflect.TypeFor[*What](): PartWhat,
	reflect.TypeFor[json.RawMessage](): PartParams, reflect.TypeFor[[]Target](): PartTargets, reflect.TypeFor[*Decision](): PartDecision, reflect.TypeFor[*Corr](): PartCorr, reflect.TypeFor[*Where](): PartWhere,
}

func partOf(t reflect.Type) Parts { return parts[t] }

// Memory holds one event, and is used again for the next one. Its zero value is ready. It must not be used by several goroutines at the same time.
type Memory struct {
	event Event
	slots []reflect.Value
}

// slots is how many places a Memory has.
var slots int

func newSlot() int {
	slots++
	return slots - 1
}

// pointer returns a pointer to a value of a type, of a place in the memory that was used before, with what it held then.
func (m *Memory) pointer(slot int, t reflect.Type) reflect.Value {
	if m == nil {
		return reflect.New(t)
	}
	if m.slots == nil {
		m.slots = make([]reflect.Value, slots)
	}
	if !m.slots[slot].IsValid() {
		m.slots[slot] = reflect.New(t)
	}
	return m.slots[slot]
}

// Read returns what Parse does of a line, without the parts that are not wanted: they are nil, but were judged like the others. A record that stands for several
// requests is read as a whole, since Count looks at all of it. Read is for lines as a writer writes them: false means that Parse must say what the line is. The event
// is valid until the next call; its texts are parts of the line.
func (m *Memory) Read(line string, wanted Parts) (*Event, bool) {
	ok := m.read(line, wanted)
	if o := m.event.Outcome; ok && o != nil && o.Count > 1 && wanted != AllParts {
		ok = m.read(line, AllParts)
	}
	if !ok {
		return nil, false
	}
	return &m.event, true
}

func (m *Memory) read(line string, wanted Parts) bool {
	m.event = Event{}
	d := decoding{Cursor: plainjson.Cursor{In: line}, unwanted: ^wanted, memory: m}
	return eventReader(&d, reflect.ValueOf(&m.event).Elem()) && d.IsEnd() && check(&m.event) == nil
}
