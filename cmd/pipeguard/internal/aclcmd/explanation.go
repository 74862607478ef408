package aclcmd

import (
	"strings"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// aclExplainReport is the JSON form of the result; its fields are promised to users.
type explainReport struct {
	Schema   string           `json:"schema"` // pipeguard.dev/acl-explain/v1
	Allowed  bool             `json:"allowed"`
	Named    bool             `json:"named"`
	Effect   access.Effect    `json:"effect"`
	Mode     access.Mode      `json:"mode"`
	Rule     string           `json:"rule"`
	Reason   string           `json:"reason"`
	Permits  []string         `json:"permits"`
	Limits   explainedLimits  `json:"limits"`
	Revision string           `json:"revision"`
	Request  explainedRequest `json:"request"`
	Rules    []explainedRule  `json:"rules"`
	Notes    []string         `json:"notes"`
}

type explainedLimits struct {
	Connections    int `json:"connections"`
	CallsPerSecond int `json:"callsPerSecond"`
	Burst          int `json:"burst"`
}

type explainedRequest struct {
	Group     string          `json:"group"`
	Version   string          `json:"version"`
	Operation string          `json:"operation"`
	Paths     []string        `json:"paths"`
	Shares    []string        `json:"shares,omitempty"`
	Services  []string        `json:"services,omitempty"`
	Caller    explainedCaller `json:"caller"`
}

type explainedCaller struct {
	Assurance      string `json:"assurance"`
	User           string `json:"user"`
	Exe            string `json:"exe"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	Pod            string `json:"pod"`
	Container      string `json:"container"`
	Image          string `json:"image"`
	HostProcess    bool   `json:"hostProcess"`
	Token          bool   `json:"token"`
	Doubt          bool   `json:"doubt"`
}

func explainCaller(c caller.Caller) explainedCaller {
	return explainedCaller{
		Assurance: string(c.Assurance), User: c.User.SID, Exe: c.Process.Exe, Namespace: c.Pod.Namespace, ServiceAccount: c.Pod.ServiceAccount, Pod: c.Pod.Name,
		Container: c.Container.Name, Image: c.Container.Image, HostProcess: c.Container.HostProcess, Token: c.Token, Doubt: c.Doubt != "",
	}
}

type explainedRule struct {
	Rule    string `json:"rule"`
	Covers  bool   `json:"covers"`
	Decides bool   `json:"decides"`
	Names   bool   `json:"names"`
	Why     string `json:"why"`
}

func explain(policy *acl.Policy, r access.Call, notes []string) explainReport {
	d := policy.Decide(r)
	report := explainReport{
		Schema: "pipeguard.dev/acl-explain/v1", Allowed: d.Allowed, Named: d.Named, Effect: d.Effect, Mode: d.Mode, Rule: d.Rule, Reason: d.Reason,
		Permits: append([]string{}, d.Permits...), Limits: explainedLimits(d.Limits), Revision: policy.Revision(),
		Request: explainedRequest{
			Group: r.Group, Version: r.Version, Operation: r.Operation, Paths: append([]string{}, r.Paths...), Shares: r.Shares, Services: r.Services,
			Caller: explainCaller(r.Caller),
		},
		Rules: []explainedRule{}, Notes: append([]string{}, notes...),
	}
	for _, v := range policy.Explain(r) {
		report.Rules = append(report.Rules, explainedRule(v))
	}
	return report
}

// printVerdict is the answer without the other rules.
func printVerdict(p *cli.Printer, r explainReport) {
	verdict := "denied"
	switch {
	case r.Effect == access.Allow:
		verdict = "allowed"
	case r.Allowed:
		verdict = "would be denied, and passes because the pipe is in mode LogOnly"
	}
	pipe := r.Request.Group
	if r.Request.Version != "" {
		pipe += "-" + r.Request.Version
	}
	p.Printf("%s on %s is %s: %s\n", inert.Line(r.Request.Operation), inert.Line(pipe), verdict, inert.Line(r.Reason))
	if len(r.Permits) > 0 {
		p.Printf("permits: %s\n", strings.Join(r.Permits, ", "))
	}
	if r.Limits != (explainedLimits{}) {
		p.Printf("limits: %d connections, %d calls per second, burst %d (0 is none)\n", r.Limits.Connections, r.Limits.CallsPerSecond, r.Limits.Burst)
	}
	for _, note := range r.Notes {
		p.Printf("note: %s\n", inert.Line(note))
	}
	p.Printf("revision %s\n", r.Revision)
}

func printExplain(p *cli.Printer, r explainReport) {
	printVerdict(p, r)
	if len(r.Rules) == 0 {
		return
	}
	p.Printf("\n")
	table := cli.NewColumns(p, "RULE", "RESULT", "WHY")
	for _, v := range r.Rules {
		result := "no"
		switch {
		case v.Decides:
			result = "decides"
		case v.Covers:
			result = "covers"
		}
		table.Add(inert.Line(v.Rule), result, inert.Line(v.Why))
	}
	table.Flush()
}
