package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// parseCallers lays KEY=VALUE pairs over c, several in one text with commas between them. A comma that no key follows belongs
// to the value before it, since names of programs may have some.
func parseCallers(texts []string, c acl.Caller) (acl.Caller, error) {
	fields := map[string]*string{
		"assurance": &c.Assurance, "user": &c.User, "exe": &c.Exe, "namespace": &c.Namespace, "serviceAccount": &c.ServiceAccount,
		"pod": &c.Pod, "container": &c.Container, "image": &c.Image,
	}
	flags := map[string]*bool{"hostProcess": &c.HostProcess, "token": &c.Token, "doubt": &c.Doubt}
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
	return c, completeCaller(&c, seen)
}

// completeCaller takes a service account with its namespace apart, and an assurance that is neither said nor recorded for the
// one that the other fields come with.
func completeCaller(c *acl.Caller, said map[string]bool) error {
	if namespace, name, ok := strings.Cut(c.ServiceAccount, "/"); ok {
		if said["namespace"] && c.Namespace != namespace {
			return fmt.Errorf("--caller: service account %q is not of namespace %q", c.ServiceAccount, c.Namespace)
		}
		c.Namespace, c.ServiceAccount = namespace, name
	}
	isSaid := said["assurance"]
	switch {
	case isSaid && c.Assurance != "none" && c.Assurance != "sid" && c.Assurance != "process" && c.Assurance != "pod":
		return fmt.Errorf("--caller assurance=%q: want none, sid, process or pod", c.Assurance)
	case isSaid, c.Assurance != "":
	case c.Namespace != "":
		c.Assurance = "pod"
	case c.Exe != "":
		c.Assurance = "process"
	case c.User != "":
		c.Assurance = "sid"
	default:
		c.Assurance = "none"
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
