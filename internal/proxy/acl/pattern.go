package acl

import (
	"errors"
	"fmt"
	"strings"
)

// named are the groups that a pattern covers only by name: system starts and stops any service of the node,
// iscsi reaches other machines.
var named = [...]string{"system", "iscsi"}

// pipePattern is a parsed GROUP-VERSION; an empty half is "*". With a full name the group is that name, in lower case.
type pipePattern struct{ group, version string }

func parsePipe(text string) (pipePattern, error) {
	if isFullName(text) {
		return parseFullName(text)
	}
	if text == "*" {
		return pipePattern{}, nil
	}
	group, version, ok := strings.Cut(text, "-")
	if !ok {
		return pipePattern{}, fmt.Errorf("pipe %q: want GROUP-VERSION, GROUP-*, *-VERSION or *", text)
	}
	p := pipePattern{group, version}
	for _, half := range []*string{&p.group, &p.version} {
		if *half == "*" {
			*half = ""
		} else if !isWord(*half) {
			return pipePattern{}, fmt.Errorf("pipe %q: %q is neither * nor a name of lower-case letters and digits", text, *half)
		}
	}
	return p, nil
}

func isWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func (p pipePattern) covers(group, version string) bool {
	if isFullName(group) {
		return p.group == foldPipe(group)
	}
	if p.version != "" && p.version != version {
		return false
	}
	if p.group != "" {
		return p.group == group
	}
	for _, n := range named {
		if n == group {
			return false
		}
	}
	return true
}

// level puts the steps of assurance in rising order; 0 is unknown and is covered by no pattern.
func level(assurance string) int {
	switch assurance {
	case "sid":
		return 1
	case "process":
		return levelProcess
	case "pod":
		return 3
	}
	return 0
}

const levelProcess = 2

// callerPattern is a parsed CallerPattern.
type callerPattern struct {
	user  string
	exe   exePattern
	least int
}

func parseCaller(c CallerPattern) (callerPattern, error) {
	if c.User == "" && c.Exe == "" {
		return callerPattern{}, errors.New("names neither a user nor an exe: it would stand for everybody")
	}
	var p callerPattern
	var errs []error
	if c.User != "" {
		p.user = foldUser(c.User)
		errs = append(errs, checkUser(p.user))
	}
	p.least = 1
	if c.Exe != "" {
		var err error
		p.exe, err = parseExe(c.Exe)
		errs = append(errs, err)
		p.least = levelProcess
	}
	if c.Assurance != "" {
		n := level(c.Assurance)
		if n == 0 {
			errs = append(errs, fmt.Errorf("assurance %q: want sid, process or pod", c.Assurance))
		}
		if n < p.least {
			errs = append(errs, fmt.Errorf("assurance %q: an exe is known only from assurance process upwards", c.Assurance))
		}
		p.least = max(p.least, n)
	}
	return p, errors.Join(errs...)
}

// covers takes the caller with its fields folded.
func (p *callerPattern) covers(level int, user string, exe image) bool {
	if level < p.least {
		return false
	}
	if p.user != "" && p.user != user {
		return false
	}
	return p.exe.any() || p.exe.covers(exe)
}

// foldUser makes one spelling of a SID; uid:N has only one.
func foldUser(user string) string {
	if strings.HasPrefix(user, "s-") {
		return "S" + user[1:]
	}
	return user
}

// checkUser accepts S-1-… as Microsoft's "SID string format" has it, and uid:N.
func checkUser(user string) error {
	if n, ok := strings.CutPrefix(user, "uid:"); ok {
		if !isNumber(n) {
			return fmt.Errorf("user %q: want uid: and a decimal number", user)
		}
		return nil
	}
	rest, ok := strings.CutPrefix(user, "S-1-")
	parts := strings.Split(rest, "-")
	if !ok || len(parts) < 2 || len(parts) > 16 {
		return fmt.Errorf("user %q: want a SID (S-1-5-18) or uid:N", user)
	}
	for _, part := range parts {
		if !isNumber(part) {
			return fmt.Errorf("user %q: %q is not a number", user, part)
		}
	}
	return nil
}

// isNumber accepts the one decimal spelling that systems print: no sign, no leading zero.
func isNumber(s string) bool {
	if s == "" || len(s) > 15 || len(s) > 1 && s[0] == '0' {
		return false
	}
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}
