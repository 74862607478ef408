package aclcmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// parseCallers lays KEY=VALUE pairs over c, several in one text with commas between them. A comma that no key follows belongs
// to the value before it, since names of programs may have some.
func parseCallers(texts []string, c caller.Caller) (caller.Caller, error) {
	isInDoubt := c.Doubt != ""
	fields := map[string]*string{
		"assurance": (*string)(&c.Assurance), "user": &c.User.SID, "exe": &c.Process.Exe, "namespace": &c.Pod.Namespace, "serviceAccount": &c.Pod.ServiceAccount,
		"pod": &c.Pod.Name, "container": &c.Container.Name, "image": &c.Container.Image,
	}
	flags := map[string]*bool{"hostProcess": &c.Container.HostProcess, "token": &c.Token, "doubt": &isInDoubt}
	isKey := func(text string) bool {
		key, _, ok := strings.Cut(text, "=")
		return ok && (fields[key] != nil || flags[key] != nil)
	}
	seen := map[string]bool{}
	for _, text := range texts {
		for _, pair := range splitPairs(text, isKey) {
			key, value, _ := strings.Cut(pair, "=")
			switch {
			case !isKey(pair):
				return c, fmt.Errorf("--caller %q: want KEY=VALUE; the keys are assurance, user, exe, namespace, serviceAccount, pod, container, image, hostProcess, token and doubt", pair)
			case seen[key]:
				return c, fmt.Errorf("--caller: %s is there twice", key)
			case flags[key] != nil:
				yes, err := strconv.ParseBool(value)
				if err != nil {
					return c, fmt.Errorf("--caller %s=%q: want true or false", key, value)
				}
				*flags[key] = yes
			default:
				*fields[key] = value
			}
			seen[key] = true
		}
	}
	switch {
	case !isInDoubt:
		c.Doubt = ""
	case c.Doubt == "":
		c.Doubt = "as --caller says"
	}
	return c, completeCaller(&c, seen)
}

// completeCaller takes a service account with its namespace apart, and an assurance that is neither said nor recorded for the
// one that the other fields come with.
func completeCaller(c *caller.Caller, said map[string]bool) error {
	if namespace, name, ok := strings.Cut(c.Pod.ServiceAccount, "/"); ok {
		if said["namespace"] && c.Pod.Namespace != namespace {
			return fmt.Errorf("--caller: service account %q is not of namespace %q", c.Pod.ServiceAccount, c.Pod.Namespace)
		}
		c.Pod.Namespace, c.Pod.ServiceAccount = namespace, name
	}
	isSaid := said["assurance"]
	switch {
	case isSaid && c.Assurance != caller.AssuranceNone && c.Assurance.Level() == caller.LevelNone:
		return fmt.Errorf("--caller assurance=%q: want none, sid, process or pod", c.Assurance)
	case isSaid, c.Assurance != "":
	case c.Pod.Namespace != "":
		c.Assurance = caller.AssurancePod
	case c.Process.Exe != "":
		c.Assurance = caller.AssuranceProcess
	case c.User.SID != "":
		c.Assurance = caller.AssuranceSID
	default:
		c.Assurance = caller.AssuranceNone
	}
	return nil
}

func splitPairs(text string, isKey func(string) bool) (pairs []string) {
	for part := range strings.SplitSeq(text, ",") {
		if len(pairs) > 0 && !isKey(part) {
			pairs[len(pairs)-1] += "," + part
			continue
		}
		pairs = append(pairs, part)
	}
	return pairs
}
