package reviewcmd

import (
	"cmp"
	"strings"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// What a container reaches.
const (
	reachPipe        = "pipe"
	reachHostPath    = "hostPath"
	reachHostProcess = "hostProcess"
)

// What nodes decide about calls by one policy.
const (
	nodeAllowed = "allowed"
	nodeDenied  = "denied"
	nodeLogOnly = "logonly" // refused by the rules, and only recorded
)

// explanation is the JSON form of the result; its fields are promised to users.
type explanation struct {
	Schema         string           `json:"schema"` // pipeguard.dev/explain/v1
	Verdict        string           `json:"verdict"`
	Revision       string           `json:"revision"`
	Live           *liveReport      `json:"live"`
	APIVersion     string           `json:"apiVersion"`
	Kind           string           `json:"kind"`
	Namespace      string           `json:"namespace"`
	Name           string           `json:"name"`
	ServiceAccount string           `json:"serviceAccount"`
	Code           string           `json:"code,omitempty"`
	Message        string           `json:"message,omitempty"`
	Warnings       []string         `json:"warnings"`
	Findings       []policy.Finding `json:"findings"`
	Reaches        []reach          `json:"reaches"`
	More           int              `json:"more"` // reaches that are left out
}

// reach is a pipe, a host path or the host itself, with what admission and nodes say of it.
type reach struct {
	Container string                    `json:"container"` // empty for a volume that no container mounts, and for a PersistentVolume
	Field     string                    `json:"field"`
	What      string                    `json:"what"`
	Path      string                    `json:"path,omitempty"`
	Pipe      string                    `json:"pipe,omitempty"`
	Codes     []string                  `json:"codes"`
	Policies  []string                  `json:"policies"` // that govern the pipe
	Subjects  []admission.AccessSubject `json:"subjects"`
	Nearest   []admission.AccessMiss    `json:"nearest"`
	Nodes     []nodeAnswer              `json:"nodes"`

	image, volumeField string
	marks              []string // codes, with effects that do not refuse
	isHost             bool
}

// nodeAnswer is what nodes with the cluster's bundle decide about calls of a container.
type nodeAnswer struct {
	Policy     string `json:"policy"`
	Decision   string `json:"decision"`
	Subject    string `json:"subject,omitempty"`
	Permission string `json:"permission,omitempty"`

	short string
}

// take fills in what PipePolicies say, with lists that are not null.
func (r *reach) take(of *admission.Access) {
	r.Codes, r.Nodes = []string{}, []nodeAnswer{}
	if r.Policies == nil {
		r.Policies = []string{}
	}
	r.Subjects, r.Nearest = []admission.AccessSubject{}, []admission.AccessMiss{}
	if of != nil {
		r.Subjects, r.Nearest = append(r.Subjects, of.Subjects...), append(r.Nearest, of.Nearest...)
	}
}

func printExplanation(p *cli.Printer, e explanation) {
	p.Printf("%s %s: %s, if it were created now", inert.Line(e.Kind), inert.Line(qualified(e.Namespace, e.Name)), e.Verdict)
	if e.Code != "" {
		p.Printf(" (%s)", inert.Line(e.Code))
	}
	p.Printf("\n")
	for _, warning := range e.Warnings {
		p.Printf("    Warning: %s\n", inert.Line(warning))
	}
	for line := range strings.Lines(e.Message) {
		p.Printf("    %s\n", inert.Line(strings.TrimRight(line, "\n")))
	}
	if len(e.Reaches) == 0 {
		p.Printf("It reaches nothing that a rule is about.\n")
	} else {
		printReaches(p, e)
	}
	p.Printf("Revision %s\n", inert.Line(e.Revision))
}

func printReaches(p *cli.Printer, e explanation) {
	table := cli.NewColumns(p, "CONTAINER", "REACHES", "FINDINGS", "PERMITTED BY", "ON NODES")
	for _, r := range e.Reaches {
		what := "the node itself (HostProcess)"
		if r.What != reachHostProcess {
			what = r.Path
		}
		table.Add(inert.Line(cmp.Or(r.Container, "-")), inert.Line(what), inert.Line(cmp.Or(strings.Join(r.marks, ", "), "-")), inert.Line(r.permittedBy(e.Verdict)), inert.Line(r.onNodes()))
	}
	table.Flush()
	if e.More > 0 {
		p.Printf("%d more are not listed\n", e.More)
	}
}

// permittedBy names the subjects that permit it, or the one that comes nearest.
func (r *reach) permittedBy(verdict string) string {
	var texts []string
	for _, s := range r.Subjects {
		text := "PipePolicy " + s.Policy + ", subject " + s.Subject
		if s.ExpiresAt != "" {
			text += ", until " + s.ExpiresAt
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		return strings.Join(texts, "; ")
	}
	for _, m := range r.Nearest {
		text := "no subject; the nearest is " + m.Subject + " of PipePolicy " + m.Policy + ", whose " + m.Field + " differs"
		if len(m.Want) > 0 {
			text += " (" + strings.Join(m.Want, ", ") + ")"
		}
		texts = append(texts, text)
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case len(r.Codes) > 0:
		return "no subject"
	case verdict == verdictAllowed:
		return "the parameters"
	}
	return "-"
}

// onNodes says in short what nodes decide.
func (r *reach) onNodes() string {
	var texts []string
	for _, n := range r.Nodes {
		switch n.Decision {
		case nodeAllowed:
			texts = append(texts, n.Policy+"/"+n.Subject+": "+n.short)
		case nodeLogOnly:
			texts = append(texts, n.Policy+": denied, and only recorded (LogOnly)")
		default:
			texts = append(texts, n.Policy+": denied")
		}
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case r.What == reachPipe && r.Container != "":
		return "their own access lists decide"
	}
	return "-"
}
