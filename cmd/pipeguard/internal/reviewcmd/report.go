package reviewcmd

import (
	"strings"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Verdicts of objects and of whole runs.
const (
	verdictAllowed   = "allowed"
	verdictDenied    = "denied"
	verdictNotJudged = "not-judged" // of objects alone
	verdictBadInput  = "bad-input"  // of runs alone
)

// reviewReport is the JSON form of the result; its fields are promised to users.
type reviewReport struct {
	Schema   string         `json:"schema"` // pipeguard.dev/review/v1
	Verdict  string         `json:"verdict"`
	Revision string         `json:"revision"`
	Live     *liveReport    `json:"live,omitempty"`
	Objects  []reviewObject `json:"objects"`
	Faults   []reviewFault  `json:"faults"`
}

type reviewObject struct {
	manifest.Place
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Namespace  string           `json:"namespace"`
	Name       string           `json:"name"`
	Verdict    string           `json:"verdict"`
	Code       string           `json:"code,omitempty"`
	Message    string           `json:"message,omitempty"`
	Note       string           `json:"note,omitempty"`
	Warnings   []string         `json:"warnings"`
	Findings   []policy.Finding `json:"findings"`
}

type reviewFault struct {
	manifest.Place
	Message string `json:"message"`
}

func faultsOf(faults []manifest.Fault) []reviewFault {
	out := []reviewFault{}
	for _, f := range faults {
		out = append(out, reviewFault{f.Place, f.Err.Error()})
	}
	return out
}

// conclude sets the verdict of the run: what could not be understood outweighs every answer.
func (r *reviewReport) conclude() {
	r.Verdict = verdictAllowed
	for _, o := range r.Objects {
		if o.Verdict == verdictDenied {
			r.Verdict = verdictDenied
		}
	}
	if len(r.Faults) > 0 {
		r.Verdict = verdictBadInput
	}
}

func printReview(p *cli.Printer, r reviewReport) {
	counts := map[string]int{}
	for _, o := range r.Objects {
		counts[o.Verdict]++
		p.Printf("%s: %s %s: %s", inert.Line(o.String()), inert.Line(o.Kind), inert.Line(qualified(o.Namespace, o.Name)), strings.ReplaceAll(o.Verdict, "-", " "))
		if o.Code != "" {
			p.Printf(" (%s)", inert.Line(o.Code))
		}
		p.Printf("\n")
		for _, warning := range o.Warnings {
			p.Printf("    Warning: %s\n", inert.Line(warning))
		}
		if o.Note != "" {
			p.Printf("    Note: %s\n", o.Note)
		}
		for line := range strings.Lines(o.Message) {
			p.Printf("    %s\n", inert.Line(strings.TrimRight(line, "\n")))
		}
	}
	printFaults(p, r.Faults)
	p.Printf("%d allowed, %d denied, %d not judged, %d faults\n",
		counts[verdictAllowed], counts[verdictDenied], counts[verdictNotJudged], len(r.Faults))
}

func printFaults(p *cli.Printer, faults []reviewFault) {
	for _, f := range faults {
		p.Printf("%s: bad input: %s\n", inert.Line(f.String()), inert.Line(f.Message))
	}
}

// qualified is a name with its namespace, if it has one.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
