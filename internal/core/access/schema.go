package access

import (
	"fmt"
	"strconv"
	"strings"
)

// Schema is the form of a Document. A later one is refused and not half understood.
const Schema = "pipeguard.dev/node-rules/v2"

// Schemas are the forms of a Document that this program reads.
func Schemas() []string { return []string{Schema} }

// SchemaFault says that a form is none of those that this program reads, and which end to upgrade. Forms are called NAME/vN, with a
// larger N in each later one.
func SchemaFault(is string, known []string) error {
	return fmt.Errorf("schema %q: want one of %q: %s", is, known, schemaRemedy(is, known))
}

func schemaRemedy(is string, known []string) string {
	name, number := splitSchema(is)
	for _, k := range known {
		switch n, at := splitSchema(k); {
		case n != name || number == 0:
		case number > at:
			return "a later release made it; upgrade this program before the webhook makes more"
		case number < at:
			return "an earlier release made it; upgrade the webhook, which then makes a new one"
		}
	}
	return "no release of Pipeguard made it"
}

// splitSchema parts NAME/vN; the number is 0 if there is none.
func splitSchema(s string) (name string, number int) {
	name, version, _ := strings.Cut(s, "/v")
	number, err := strconv.Atoi(version)
	if err != nil {
		return name, 0
	}
	return name, number
}
