package access

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// agent is a subject and a process of the node that is it.
func agent() (Subject, caller.Caller) {
	return Subject{Name: "agent", Account: "S-1-5-18", Program: `C:\Program Files\Agent\agent.exe`},
		caller.Caller{Assurance: caller.AssuranceProcess, User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{PID: 1, Exe: `C:\Program Files\Agent\agent.exe`}}
}

// faultyProcesses are subjects that are at fault as processes of the node, by a part of what is said of them.
var faultyProcesses = map[string]func(*Subject){
	"leave namespace, serviceAccounts": func(s *Subject) { s.Namespace = "n" },
	"serviceAccounts":                  func(s *Subject) { s.ServiceAccounts = []string{"a"} },
	"containers":                       func(s *Subject) { s.Containers = []string{} },
	"images":                           func(s *Subject) { s.Images = []string{"r.io/a/driver:v1"} },
	"has a token":                      func(s *Subject) { s.RequireToken = true },
	`account ""`:                       func(s *Subject) { s.Account = "" },
	`account "SYSTEM"`:                 func(s *Subject) { s.Account = "SYSTEM" },
	`account "s-1-5-18"`:               func(s *Subject) { s.Account = "s-1-5-18" },
	`account "S-1-5-018"`:              func(s *Subject) { s.Account = "S-1-5-018" },
	`account "uid:0"`:                  func(s *Subject) { s.Account = "uid:0" },
	"nothing but containers":           func(s *Subject) { s.Account = "S-1-5-93-2-1" },
	`account "S-1-1-0"`:                func(s *Subject) { s.Account = "S-1-1-0" },
	"it is a group":                    func(s *Subject) { s.Account = "S-1-5-32-544" },
	"ends in a dot":                    func(s *Subject) { s.Program = `C:\d\x.exe.` },
	"or a space":                       func(s *Subject) { s.Program = `C:\d \x.exe` },
	`program ""`:                       func(s *Subject) { s.Program = "" },
	`program "agent.exe"`:              func(s *Subject) { s.Program = "agent.exe" },
	`program "/agent"`:                 func(s *Subject) { s.Program = "/agent" },
	`Agent\\*"`:                        func(s *Subject) { s.Program = `C:\Program Files\Agent\*` },
	`Agent\\"`:                         func(s *Subject) { s.Program = `C:\Program Files\Agent\` },
	`agent*"`:                          func(s *Subject) { s.Program = `C:\Program Files\Agent\agent*` },
	`..\\agent.exe"`:                   func(s *Subject) { s.Program = `C:\Program Files\..\agent.exe` },
}

func TestAProcessOfANodeIsOneProgramOfOneAccount(t *testing.T) {
	if s, _ := agent(); s.CheckProcess() != nil || !s.IsProcess() {
		t.Error(s.CheckProcess())
	}
	if s, _ := driver(); s.CheckProcess() != nil || s.IsProcess() {
		t.Error("containers are a process")
	}
	for want, change := range faultyProcesses {
		s, _ := agent()
		change(&s)
		if err := s.CheckProcess(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

// asked is the decision of a node with one policy, of these subjects, about FormatVolume.
func asked(c caller.Caller, subjects ...Subject) Decision {
	document := Document{Schema: Schema, Policies: []Policy{{Name: "p", Pipes: []string{"csi-proxy-volume-*"}, Subjects: subjects}}}
	served := []API{{Group: "volume", Version: "v1", Operations: []string{"FormatVolume"}}}
	return NewTable(document, served, now).Decide(Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: c})
}

func TestASubjectThatIsAProcessIsNobodyElse(t *testing.T) {
	container := func(c *caller.Caller) {
		c.Assurance, c.Pod = caller.AssurancePod, caller.Pod{Namespace: "team", ServiceAccount: "a"}
		c.Container = caller.Container{Name: "app", Image: "r.io/a/driver:v1"}
	}
	for name, tt := range map[string]struct {
		caller         func(*caller.Caller)
		allowed, named bool
	}{
		"itself":                    {func(*caller.Caller) {}, true, true},
		"in capitals":               {func(c *caller.Caller) { c.Process.Exe = strings.ToUpper(c.Process.Exe) }, true, true},
		"a HostProcess container":   {func(c *caller.Caller) { container(c); c.Container.HostProcess = true }, true, false},
		"in doubt":                  {func(c *caller.Caller) { c.Doubt = "the runtime is away" }, true, false},
		"what may be a pod":         {func(c *caller.Caller) { c.Pod.Name = "x" }, true, false},
		"a container":               {container, false, false},
		"a container of no name":    {func(c *caller.Caller) { c.Assurance = caller.AssurancePod }, false, false},
		"of a namespace that is no": {func(c *caller.Caller) { container(c); c.Container.HostProcess, c.Pod.Namespace = true, "A/B" }, false, false},
		"another account":           {func(c *caller.Caller) { c.User.SID = "S-1-5-19" }, false, false},
		"no account":                {func(c *caller.Caller) { c.User.SID = "" }, false, false},
		"another program":           {func(c *caller.Caller) { c.Process.Exe = `C:\Program Files\Agent\agent.exe.exe` }, false, false},
		"a program beneath":         {func(c *caller.Caller) { c.Process.Exe += `\x.exe` }, false, false},
		"no program":                {func(c *caller.Caller) { c.Process.Exe = "" }, false, false},
		"an account alone":          {func(c *caller.Caller) { c.Assurance = caller.AssuranceSID }, false, false},
		"what a pod declares":       {func(c *caller.Caller) { container(c); c.Assurance = caller.AssuranceDeclared }, false, false},
		"nobody":                    {func(c *caller.Caller) { c.Assurance = caller.AssuranceNone }, false, false},
	} {
		s, c := agent()
		tt.caller(&c)
		if d := asked(c, s); d.Allowed != tt.allowed || d.Named {
			t.Errorf("%s, all methods: %+v", name, d)
		}
		s.Methods = []string{"FormatVolume"}
		if d := asked(c, s); d.Allowed != tt.allowed || d.Named != tt.named {
			t.Errorf("%s, the method: %+v", name, d)
		}
	}
}

// What is not asked for fits anybody, so a subject at fault must not ask for less.
func TestAProcessAtFaultIsNobody(t *testing.T) {
	for name, change := range faultyProcesses {
		s, c := agent()
		change(&s)
		inPod, declared := driver()
		declared.Assurance, declared.User, declared.Process = caller.AssurancePod, c.User, c.Process
		declared.Container.HostProcess, declared.Token = true, true
		inPod.Namespace = "elsewhere"
		for _, who := range []caller.Caller{c, declared} {
			if d := asked(who, s, inPod); d.Allowed {
				t.Errorf("%s: %+v is permitted", name, who)
			}
		}
	}
}

func TestNoContainerIsAProcessNorNearToOne(t *testing.T) {
	process, _ := agent()
	containers, c := driver()
	if is, ended, miss := NewSubjects([]Subject{process}).Match(&c, OfPipe, now); is != nil || ended != nil || miss.Subject != nil {
		t.Errorf("is %v, was %v, nearest %+v", is, ended, miss)
	}
	subjects := NewSubjects([]Subject{process, containers})
	if is, _, _ := subjects.Match(&c, OfPipe, now); is == nil || is.Name != "driver" {
		t.Errorf("is %v", is)
	}
	c.Pod.Namespace = "shop"
	if _, _, miss := subjects.Match(&c, OfPipe, now); miss.Subject == nil || miss.Subject.Name != "driver" || miss.Field != FieldNamespace {
		t.Errorf("nearest %+v", miss)
	}
	c.Pod.Namespace = ""
	if is, _, miss := subjects.Match(&c, OfPipe, now); is != nil || miss.Subject != nil {
		t.Errorf("without a namespace: is %v, nearest %+v", is, miss)
	}
}

func TestLettersOfOtherScriptsAreComparedAsTheyAre(t *testing.T) {
	for a, b := range map[string]string{"\U00010428": "\U00010400", "\u10d0": "\u1c90", "\uab70": "\u13a0", "\u026a": "\ua7ae", "\u2c5f": "\u2c2f"} {
		if SameExe(`C:\`+a, `C:\`+b) {
			t.Errorf("%s is %s", a, b)
		}
	}
	for a, b := range map[string]string{"é": "É", "ř": "Ř", "ω": "Ω", "ж": "Ж", "ա": "Ա"} {
		if !SameExe(`C:\`+a, `C:\`+b) {
			t.Errorf("%s is not %s", a, b)
		}
	}
}

func TestLettersThatWindowsMayKeepApartAreNotOne(t *testing.T) {
	for _, pair := range [][2]string{{"\u00b5", "\u03bc"}, {"\u1e9b", "\u1e61"}, {"\u212a", "k"}, {"\u017f", "s"}, {"\u0131", "i"}} {
		if SameExe(`C:\`+pair[0]+`\d.exe`, `C:\`+pair[1]+`\d.exe`) {
			t.Errorf("%q is %q", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"\u00e9", "\u00c9"}, {"\u03bc", "\u039c"}, {"\u0436", "\u0416"}, {"a", "A"}} {
		if !SameExe(`C:\`+pair[0]+`\d.exe`, `C:\`+pair[1]+`\d.exe`) {
			t.Errorf("%q is not %q", pair[0], pair[1])
		}
	}
}
