package auditcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// auditStory is the JSON form of a request's story; its fields are promised to users.
type storyReport struct {
	Schema     string            `json:"schema"` // pipeguard.dev/audit-show/v1
	Records    []json.RawMessage `json:"records"`
	Connection json.RawMessage   `json:"connection,omitempty"`
	Before     []json.RawMessage `json:"before"`
	After      []json.RawMessage `json:"after"`
}

// showStory prints all that a log says of one request.
func showStory(in *reading, log, id string, neighbours int, out *cli.Choice) error {
	records, err := in.records([]string{log})
	if err != nil {
		return err
	}
	var numbered *query.Record
	story, err := query.Tell(remember(records, id, &numbered), id, neighbours)
	if errors.Is(err, query.ErrNotFound) && numbered != nil {
		if log == "-" {
			return in.judged(cli.BadInput(fmt.Errorf("standard input is read once, and record %d is known when it has passed: name its id, %q", numbered.Seq, numbered.ID)))
		}
		if numbered.ID != "" && (numbered.Type == audit.TypeRequest || numbered.Type == audit.TypeAdmission) {
			story, err = query.Tell(in.again(), numbered.ID, neighbours)
		} else {
			story, err = query.TellRecord(in.again(), numbered.Seq, neighbours)
		}
	}
	switch {
	case errors.Is(err, query.ErrNotFound):
		return in.judged(cli.BadInput(errors.Join(fmt.Errorf("%s: no record has the id %q, or that number", log, id), in.named)))
	case err != nil:
		return in.judged(cli.BadInput(err))
	}
	return out.Print(in.cmd, storyOf(story), func(p *cli.Printer) { printStory(p, story) }).Done(in.done(nil))
}

// remember passes records on, and keeps the first one whose number was given in place of an id.
func remember(records iter.Seq2[query.Record, error], number string, found **query.Record) iter.Seq2[query.Record, error] {
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return records
	}
	return filtered(records, func(r query.Record, err error) bool {
		if err == nil && r.Seq == seq && *found == nil {
			kept := r.Keep()
			*found = &kept
		}
		return true
	})
}

func storyOf(s *query.Story) storyReport {
	report := storyReport{Schema: "pipeguard.dev/audit-show/v1", Records: raws(s.Records), Before: raws(s.Before), After: raws(s.After)}
	if s.Connection != nil {
		report.Connection = s.Connection.Raw
	}
	return report
}

func raws(records []query.Record) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(records))
	for _, r := range records {
		list = append(list, r.Raw)
	}
	return list
}

func printStory(p *cli.Printer, s *query.Story) {
	for _, r := range s.Records {
		p.Printf("%s, record %d (%s, line %d)\n", stageTitle(r.Event), r.Seq, inert.Line(r.File), r.Line)
		printFacts(p, r.Event)
		p.Printf("\n")
	}
	if t := s.Records[0].Type; t == audit.TypeRequest || t == audit.TypeAdmission {
		p.Printf("%s\n", ending(s))
	}
	if c := s.Connection; c != nil {
		p.Printf("\nConnection, record %d (%s, line %d)\n", c.Seq, inert.Line(c.File), c.Line)
		printFacts(p, c.Event)
	}
	if len(s.Before)+len(s.After) > 0 {
		p.Printf("\nBeside it in the log\n")
		table := cli.NewColumns(p, header(false)...)
		for _, r := range append(s.Before, s.After...) {
			table.Add(row(r, false)...)
		}
		table.Flush()
	}
}

func stageTitle(e audit.Event) string {
	switch e.Stage {
	case audit.StageRequestReceived:
		return "Intent"
	case audit.StageResponseComplete:
		return "End"
	case audit.StagePanic:
		return "Panic"
	}
	return inert.Line(string(e.Stage))
}

// ending says in a sentence what became of the request.
func ending(s *query.Story) string {
	last := s.Records[len(s.Records)-1]
	hasIntent := s.Records[0].Stage == audit.StageRequestReceived || last.IntentSeq != 0
	switch {
	case last.Stage == audit.StageRequestReceived:
		return "No record ends it: it is in flight, or the proxy was killed and it may or may not have been carried out."
	case last.Stage == audit.StageOrphaned:
		return "It was let through, and its end was not recorded: it may or may not have been carried out."
	case last.Stage == audit.StagePanic:
		return "It ended by a fault of the proxy."
	case last.Type == audit.TypeAdmission:
		return "It was decided by the webhook."
	case !hasIntent:
		return "It has no intent: it was refused before anything was done."
	case query.Decision(&last.Event) == query.DecisionLogOnly:
		return "It was denied, and carried out all the same: the rules are in LogOnly."
	}
	return "It was let through, and ended."
}

// printFacts prints every field of a record under the name that it has there, one a line.
func printFacts(p *cli.Printer, e audit.Event) {
	doc, err := inert.Marshal(e)
	if err != nil {
		p.Err = errors.Join(p.Err, err)
		return
	}
	for _, fact := range facts("", doc) {
		p.Printf("  %-28s %s\n", inert.Line(fact[0]), inert.Line(fact[1]))
	}
}

// facts flattens a JSON object in the order of its fields. Parameters and lists of texts stay JSON.
func facts(prefix string, doc []byte) (list [][2]string) {
	decoder := json.NewDecoder(strings.NewReader(string(doc)))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return [][2]string{{prefix, string(doc)}}
	}
	for decoder.More() {
		key, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return list
		}
		name := strings.TrimPrefix(fmt.Sprintf("%s.%v", prefix, key), ".")
		var text string
		switch {
		case name == "what.params":
			list = append(list, [2]string{name, string(value)})
		case json.Unmarshal(value, &text) == nil:
			list = append(list, [2]string{name, text})
		default:
			list = append(list, facts(name, value)...)
		}
	}
	return list
}
