package reviewcmd

import (
	"cmp"
	"strings"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// whyReport is the JSON form of the result; its fields are promised to users.
type whyReport struct {
	Schema  string        `json:"schema"` // pipeguard.dev/why-system/v1
	Objects []whyObject   `json:"objects"`
	Faults  []reviewFault `json:"faults"`
}

// whyObject is an object with HostProcess containers.
type whyObject struct {
	manifest.Place
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace"`
	Name       string         `json:"name"`
	Containers []whyContainer `json:"containers"`
	Reaches    []whyReach     `json:"reaches"` // by weight
	Notes      []string       `json:"notes"`

	known map[whyText]int // where in Reaches
	noted map[string]bool // of Notes
}

// whyText is what tells one of the things that containers reach from another.
type whyText struct{ weight, what, how, pipeDriver string }

type whyContainer struct {
	Field   string `json:"field"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Account string `json:"account"`
	Means   string `json:"means"`
}

// whyReach is something that containers of the object reach, each once.
type whyReach struct {
	Weight     string   `json:"weight"`
	What       string   `json:"what"`
	How        string   `json:"how"`
	PipeDriver string   `json:"pipeDriver"`
	Containers []string `json:"containers"` // their fields
}

// reach adds something that a container reaches.
func (o *whyObject) reach(field string, weight int, what, how, pipeDriver string) {
	text := whyText{weights[weight], what, how, pipeDriver}
	if o.known == nil {
		o.known = map[whyText]int{}
	}
	i, ok := o.known[text]
	if !ok {
		i = len(o.Reaches)
		o.known[text] = i
		o.Reaches = append(o.Reaches, whyReach{Weight: text.weight, What: what, How: how, PipeDriver: pipeDriver})
	}
	o.Reaches[i].Containers = append(o.Reaches[i].Containers, field)
}

func (o *whyObject) note(text string) {
	if o.noted == nil {
		o.noted = map[string]bool{}
	}
	if !o.noted[text] {
		o.noted[text] = true
		o.Notes = append(o.Notes, text)
	}
}

func printWhy(p *cli.Printer, r whyReport) {
	hosts := 0
	for _, o := range r.Objects {
		hosts += len(o.Containers)
		printWhyObject(p, o)
	}
	printFaults(p, r.Faults)
	if hosts == 0 {
		p.Printf("no HostProcess containers, %d faults\n", len(r.Faults))
		return
	}
	p.Printf("%d HostProcess containers, %d faults\n", hosts, len(r.Faults))
}

func printWhyObject(p *cli.Printer, o whyObject) {
	p.Printf("%s: %s %s\n", inert.Line(o.String()), inert.Line(o.Kind), inert.Line(qualified(o.Namespace, o.Name)))
	names := map[string]string{}
	for _, c := range o.Containers {
		names[c.Field] = c.Name
	}
	if len(o.Reaches) > 0 {
		table := cli.NewColumns(p, "    WEIGHT", "WHAT IT REACHES", "HOW", "A DRIVER WITH PIPES", "CONTAINERS")
		for _, reach := range o.Reaches {
			who := "all"
			if len(reach.Containers) < len(o.Containers) {
				var some []string
				for _, field := range reach.Containers {
					some = append(some, names[field])
				}
				who = strings.Join(some, ", ")
			}
			table.Add("    "+reach.Weight, inert.Line(reach.What), inert.Line(reach.How), inert.Line(reach.PipeDriver), inert.Line(who))
		}
		table.Flush()
	}
	for _, c := range o.Containers { // behind what they reach: a crowd of harmless ones hides nothing
		p.Printf("    HostProcess container %s (%s), account %s: %s\n", inert.Line(c.Name), inert.Line(c.Field), inert.Line(cmp.Or(c.Account, "none")), c.Means)
	}
	for _, note := range o.Notes {
		p.Printf("    Note: %s\n", inert.Line(note))
	}
}
