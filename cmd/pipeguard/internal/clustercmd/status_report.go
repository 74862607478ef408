package clustercmd

import (
	"fmt"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// Verdicts of a survey.
const (
	verdictEnforced = "enforced"
	verdictNot      = "not-enforced"
	verdictUnknown  = "unknown"
)

// States of checks.
const (
	stateOK      = "ok"
	stateNo      = "no"
	stateUnknown = "unknown"
)

// statusReport is the JSON form of the result; its fields are promised to users.
type statusReport struct {
	Schema    string        `json:"schema"` // pipeguard.dev/status/v1
	Verdict   string        `json:"verdict"`
	Server    string        `json:"server"`
	Namespace string        `json:"namespace"`
	Revisions []string      `json:"revisions"`
	Checks    []check       `json:"checks"`
	Modes     *modesReport  `json:"modes"`
	Preset    *presetReport `json:"preset"`
	Existing  *existing     `json:"existing"`
	Nodes     *nodesCounted `json:"nodes"`
}

// check is one question and its answer.
type check struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
	Items []item `json:"items"`
}

// item is one thing that keeps a check from being ok, or what is worth knowing about it.
type item struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func newCheck(name string) check { return check{Check: name, State: stateOK, Items: []item{}} }

// no adds a fault. An unknown check becomes one that is answered: one fault is enough.
func (c *check) no(name, format string, args ...any) {
	c.State = stateNo
	c.Items = append(c.Items, item{name, fmt.Sprintf(format, args...)})
}

// unknown adds why something could not be found out.
func (c *check) unknown(name string, err error) {
	if c.State == stateOK {
		c.State = stateUnknown
	}
	text := why(err)
	if lacksRight(err) {
		text = "not permitted: " + text
	}
	c.Items = append(c.Items, item{name, text})
}

// conclude sets the verdict: a fault is one whatever else is not known.
func (r *statusReport) conclude() {
	r.Verdict = verdictEnforced
	for _, c := range r.Checks {
		switch {
		case c.State == stateNo:
			r.Verdict = verdictNot
			return
		case c.State != stateOK:
			r.Verdict = verdictUnknown
		}
	}
}

// maxShown bounds the items of a check in the form for people.
const maxShown = 10

func printStatus(p *cli.Printer, r statusReport) {
	table := cli.NewColumns(p, "CHECK", "STATE", "WHAT")
	for _, c := range r.Checks {
		table.Add(c.Check, c.State, inert.Line(c.Text))
		for i, it := range c.Items {
			if i == maxShown {
				table.Add("", "", fmt.Sprintf("  and %d more: see -o json", len(c.Items)-i))
				break
			}
			table.Add("", "", "  "+inert.Line(it.Name)+": "+inert.Line(it.Text))
		}
	}
	table.Flush()
	if r.Existing != nil && len(r.Existing.Next) > 0 {
		printNext(p, r.Existing.Next)
	}
	p.Printf("\n%s\n", map[string]string{
		verdictEnforced: "The guard is enforced everywhere.", verdictNot: "The guard is not enforced everywhere.",
		verdictUnknown: "Whether the guard is enforced everywhere is unknown.",
	}[r.Verdict])
}

func printNext(p *cli.Printer, steps []nextStep) {
	p.Printf("\n")
	table := cli.NewColumns(p, "NEXT STEP", "WOULD REFUSE")
	for _, s := range steps {
		text := count(s.Objects, "object") + " (" + count(s.Findings, "finding") + ")"
		if s.AtLeast {
			text = "at least " + text
		}
		table.Add(inert.Line(s.String()), text)
	}
	table.Flush()
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
