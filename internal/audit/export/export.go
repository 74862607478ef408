package export

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// Formats are the names of all formats.
func Formats() []string { return []string{"ocsf", "ecs", "csv"} }

// Writer writes records one after the other.
type Writer interface {
	// Record writes one record.
	Record(r query.Record) error
	// Flush writes what waits, a header too if no record came.
	Flush() error
}

// New returns a Writer of a format to w: one JSON object a line, or a table with a header.
func New(format string, w io.Writer) (Writer, error) {
	switch format {
	case "ocsf":
		return jsonLines{w, ocsf}, nil
	case "ecs":
		return jsonLines{w, ecs}, nil
	case "csv":
		return &table{w: w}, nil
	}
	return nil, fmt.Errorf("no format %q: there are %s", format, strings.Join(Formats(), ", "))
}

// object is a JSON object; its fields are written in the order of their names.
type object map[string]any

// filled returns an object without the fields that say nothing: empty texts, numbers, lists and objects.
func filled(o object) object {
	maps.DeleteFunc(o, func(_ string, value any) bool {
		v := reflect.ValueOf(value)
		switch v.Kind() {
		case reflect.Map, reflect.Slice:
			return v.Len() == 0
		}
		return v.IsZero()
	})
	return o
}

type jsonLines struct {
	w  io.Writer
	of func(query.Record) object
}

func (j jsonLines) Record(r query.Record) error {
	doc, err := json.Marshal(j.of(r))
	if err != nil {
		return fmt.Errorf("encode record %d: %w", r.Seq, err)
	}
	_, err = j.w.Write(append(inert.JSON(doc), '\n'))
	return err
}

func (jsonLines) Flush() error { return nil }
